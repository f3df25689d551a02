// Two sessions over a real TCP connection, or one session and a raw socket that speaks as its peer.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { Session, type SessionOptions, type YamuxStream } from '../../src/yamux/index.ts'
import { atEnd, type Test } from '../support/cleanup.ts'

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

export interface Peer {
  session: Session
  /** Resolves with the reason of the close. */
  closed: Promise<Error | undefined>
  streams: YamuxStream[]
}

export function startSession(
  socket: Socket,
  options: Pick<SessionOptions, 'role'> & Partial<SessionOptions>,
): Peer {
  const { promise: closed, resolve } = Promise.withResolvers<Error | undefined>()
  const streams: YamuxStream[] = []
  const session = new Session(socket, {
    onStream(stream) {
      streams.push(stream)
      stream.on('error', () => {})
    },
    ...options,
    onClose: resolve,
  })
  return { session, closed, streams }
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

/** Everything until the end of the stream. Leaves the stream open for writing. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(stream, 'end')
  return Buffer.concat(chunks)
}
