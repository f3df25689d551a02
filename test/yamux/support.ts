// Two sessions over a real TCP connection, or one session and a raw socket that speaks as its peer.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { type Connection, Session, type SessionOptions, type YamuxStream } from '../../src/yamux/index.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'

export async function socketPair(t: Test): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const near = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', noDelay: true })
  const [far] = (await once(server, 'connection')) as [Socket]
  server.close()
  for (const socket of [near, far]) {
    socket.on('error', () => {})
    atEnd(t, () => socket.destroy())
  }
  return [near, far]
}

/** A plain socket as the connection of a session. */
const toConnection = (socket: Socket): Connection =>
  Object.assign(socket, {
    send(chunks: readonly Buffer[], done: () => void) {
      socket.cork()
      for (const chunk of chunks) socket.write(chunk)
      socket.write('', done)
      socket.uncork()
    },
  })

export interface Peer {
  session: Session
  /** Resolves with the reason of the close. */
  closed: Promise<Error | undefined>
  streams: YamuxStream[]
  /** Opens a stream whose errors are ignored, unless the test listens: cleanup resets it. */
  open(): YamuxStream
}

export function startSession(
  socket: Socket,
  options: Pick<SessionOptions, 'role'> & Partial<SessionOptions>,
): Peer {
  const { promise: closed, resolve } = Promise.withResolvers<Error | undefined>()
  const streams: YamuxStream[] = []
  const session = new Session(toConnection(socket), {
    ...options,
    onStream(stream) {
      stream.on('error', () => {})
      streams.push(stream)
      options.onStream?.(stream)
    },
    onClose: resolve,
  })
  return { session, closed, streams, open: () => session.open().on('error', () => {}) }
}

export async function sessionPair(
  t: Test,
  clientOptions: Partial<SessionOptions> = {},
  serverOptions: Partial<SessionOptions> = {},
): Promise<{ client: Peer; server: Peer }> {
  const [near, far] = await socketPair(t)
  return {
    client: startSession(near, { ...clientOptions, role: 'client' }),
    server: startSession(far, { ...serverOptions, role: 'server' }),
  }
}

/** The next stream that the peer opens, or the first one that was not taken yet. */
export async function accepted(peer: Peer): Promise<YamuxStream> {
  await until('a stream is accepted', () => peer.streams.length > 0)
  const stream = peer.streams.shift()
  assert.ok(stream)
  return stream
}

export async function streamPair(
  t: Test,
  clientOptions: Partial<SessionOptions> = {},
  serverOptions: Partial<SessionOptions> = {},
) {
  const { client, server } = await sessionPair(t, clientOptions, serverOptions)
  const near = client.open()
  return { client, server, near, far: await accepted(server) }
}

export interface RawFrame {
  type: number
  flags?: number
  id?: number
  length?: number
  payload?: string
  version?: number
}

export function frame({ type, flags = 0, id = 0, payload = '', length, version = 0 }: RawFrame): Buffer {
  const header = Buffer.alloc(12)
  header.writeUInt8(version, 0)
  header.writeUInt8(type, 1)
  header.writeUInt16BE(flags, 2)
  header.writeUInt32BE(id, 4)
  header.writeUInt32BE(length ?? payload.length, 8)
  return Buffer.concat([header, Buffer.from(payload)])
}

/** The frames in what was received so far. */
function framesIn(bytes: Buffer): Required<Omit<RawFrame, 'payload'>>[] {
  const frames = []
  for (let at = 0; at + 12 <= bytes.length; ) {
    const header = {
      version: bytes.readUInt8(at),
      type: bytes.readUInt8(at + 1),
      flags: bytes.readUInt16BE(at + 2),
      id: bytes.readUInt32BE(at + 4),
      length: bytes.readUInt32BE(at + 8),
    }
    frames.push(header)
    at += 12 + (header.type === DATA ? header.length : 0)
  }
  return frames
}

export const DATA = 0
export const WINDOW_UPDATE = 1
export const PING = 2
export const GO_AWAY = 3
export const SYN = 1
export const ACK = 2
export const FIN = 4
export const RST = 8

/** A session of the server side, and a raw socket as its client. */
export async function rawPeer(t: Test, options: Partial<SessionOptions> = {}) {
  const [socket, far] = await socketPair(t)
  const server = startSession(far, { ...options, role: 'server' })
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  return { socket, server, frames: () => framesIn(Buffer.concat(chunks)) }
}

/** Everything until the end of the stream. Leaves the stream open for writing. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(stream, 'end')
  return Buffer.concat(chunks)
}
