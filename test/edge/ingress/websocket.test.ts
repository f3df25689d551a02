// The WebSocket connection, against the `ws` package in both roles, and frame by frame.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import {
  type AddressInfo,
  createServer as createTcpServer,
  type Socket,
  connect as tcpConnect,
} from 'node:net'
import { type Duplex, duplexPair } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket, WebSocketServer } from 'ws'
import { acceptKey, WebSocketConnection, WebSocketError } from '../../../src/tunnel-protocol/websocket.ts'
import type { Connection } from '../../../src/yamux/index.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { listen } from '../../support/network/listen.ts'
import { createRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'

type Role = 'client' | 'server'
const roles: readonly Role[] = ['client', 'server']

interface Pair {
  stream: WebSocketConnection
  peer: WebSocket
  socket: Duplex
}

/** A stream in the given role, and a `ws` socket in the other one, over TCP. */
async function connectPair(t: Test, role: Role): Promise<Pair> {
  const pair = role === 'server' ? await acceptFromWs(t) : await connectToWs(t)
  pair.peer.on('error', () => undefined)
  atEnd(t, () => {
    pair.peer.terminate()
    pair.stream.destroy()
  })
  return pair
}

async function acceptFromWs(t: Test): Promise<Pair> {
  const server = createServer()
  const accepted = Promise.withResolvers<{ stream: WebSocketConnection; socket: Duplex }>()
  server.on('upgrade', ({ headers }, socket, head) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${acceptKey(String(headers['sec-websocket-key']))}\r\n\r\n`,
    )
    accepted.resolve({ stream: new WebSocketConnection(socket, { role: 'server', head }), socket })
  })
  const port = await listen(t, server)
  const peer = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false })
  await once(peer, 'open')
  return { ...(await accepted.promise), peer }
}

async function connectToWs(t: Test): Promise<Pair> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  atEnd(t, () => server.close())
  const connected = once(server, 'connection')
  const key = randomBytes(16).toString('base64')
  const upgrade = request({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': key,
    },
  }).end()
  const [response, socket, head] = await once(upgrade, 'upgrade')
  assert.equal(response.headers['sec-websocket-accept'], acceptKey(key))
  const [peer] = await connected
  return { stream: new WebSocketConnection(socket, { role: 'client', head }), peer, socket }
}

/** Collects without end: the other direction stays open. */
function collect(stream: Pick<Connection, 'on' | 'resume'>): () => Buffer {
  const chunks: Buffer[] = []
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  stream.resume()
  return () => Buffer.concat(chunks)
}

for (const role of roles) {
  test(`${role}: random messages, fragments and pings arrive as one stream of bytes`, async (t) => {
    const random = createRandom(`websocket ${role}`)
    const { stream, peer } = await connectPair(t, role)
    stream.on('data', (chunk) => stream.send([chunk], assert.ifError))
    stream.resume()
    const received: Buffer[] = []
    peer.on('message', (data: Buffer, isBinary) => {
      assert.equal(isBinary, true)
      received.push(data)
    })
    let pongs = 0
    peer.on('pong', (data) => {
      assert.equal(String(data), 'are you there')
      pongs += 1
    })
    const sizes = [0, 1, 63, 64, 65, 125, 126, 127, 4_095, 4_096, 4_097, 65_535, 65_536, 200_000]
    const sent: Buffer[] = []
    for (let index = 0; index < 200; index += 1) {
      const message = randomBytes(random.chance(0.5) ? random.pick(sizes) : random.whole(0, 10_000))
      sent.push(message)
      const parts = random.whole(1, 5)
      for (let part = 0; part < parts; part += 1) {
        const [start, end] = [part, part + 1].map((at) => Math.floor((message.length * at) / parts))
        peer.send(message.subarray(start, end), { binary: true, fin: part === parts - 1 })
        if (random.chance(0.3)) peer.ping('are you there')
      }
      if (random.chance(0.1)) await sleep(1)
    }
    const all = Buffer.concat(sent)
    await until('all received', () => received.reduce((sum, { length }) => sum + length, 0) >= all.length)
    assert.ok(Buffer.concat(received).equals(all))
    assert.ok(pongs > 0)
  })

  test(`${role}: frames arrive byte by byte, with control frames inside of messages`, async () => {
    const [near, far] = duplexPair()
    const stream = new WebSocketConnection(near, { role })
    const read = collect(stream)
    const sent = collect(far)
    const isMasked = role === 'server'
    const bytes = Buffer.concat([
      frame(2, text(10), { isMasked, isFinal: false }),
      frame(9, Buffer.alloc(125, 'p'), { isMasked }),
      frame(0, text(300), { isMasked, isFinal: false }),
      frame(10, Buffer.alloc(0), { isMasked }),
      frame(0, Buffer.alloc(0), { isMasked }),
      frame(2, text(70_000), { isMasked }),
    ])
    for (const byte of bytes) far.write(Buffer.from([byte]))
    await until('all read', () => read().length === 70_310)
    assert.match(String(read()), /^a+$/)
    assert.deepEqual(
      sent(),
      frame(10, Buffer.alloc(125, 'p'), { isMasked: !isMasked, mask: Buffer.alloc(4) }),
    )
  })

  test(`${role}: many chunks of a tick, small and large, are read by the peer in order`, async (t) => {
    const { stream, peer } = await connectPair(t, role)
    const received: Buffer[] = []
    peer.on('message', (data: Buffer) => received.push(data))
    const chunks = Array.from({ length: 100 }, (_, index) => Buffer.alloc((index * 1_237) % 9_000, index))
    stream.send(chunks.slice(0, 50), assert.ifError)
    for (const chunk of chunks.slice(50)) stream.send([chunk], assert.ifError)
    stream.end()
    const [code] = await once(peer, 'close')
    assert.equal(code, 1000)
    assert.ok(Buffer.concat(received).equals(Buffer.concat(chunks)))
  })

  test(`${role}: a peer that does not read stops the writer, and its pings fill no memory`, async (t) => {
    const { stream, peer, socket } = await connectPair(t, role)
    stream.resume()
    const chunk = Buffer.alloc(64 * 1024, 'x')
    peer.pause()
    let unsent = 0
    const onSent = () => {
      unsent -= 1
    }
    await until('the stream is full', async () => {
      while (unsent < 4) {
        unsent += 1
        stream.send([chunk], onSent)
      }
      await sleep(20)
      return unsent === 4
    })
    const buffered = socket.writableLength
    for (let index = 0; index < 20_000; index += 1) peer.ping(Buffer.alloc(125, 'p'))
    peer.send('x', { binary: true })
    await once(stream, 'data')
    assert.ok(socket.writableLength <= buffered, `${socket.writableLength} bytes of pongs`)
    let pongs = 0
    peer.on('pong', () => {
      pongs += 1
    })
    peer.resume()
    await until('everything is sent, and a pong', () => unsent === 0 && pongs > 0)
  })

  test(`${role}: of many pings at once, the last one is answered`, async (t) => {
    const { stream, peer } = await connectPair(t, role)
    const pongs: string[] = []
    peer.on('pong', (payload) => pongs.push(String(payload)))
    for (let index = 0; index < 1_000; index += 1) peer.ping(String(index))
    await until('all are sent', () => peer.bufferedAmount === 0)
    stream.resume()
    await until('the last one is answered', () => pongs.at(-1) === '999')
    assert.ok(pongs.length < 500, `${pongs.length} pongs`)
  })

  test(`${role}: nothing is received before it is read, so the peer stops`, async (t) => {
    const { stream, peer, socket } = await connectPair(t, role)
    const message = Buffer.alloc(64 * 1024, 'x')
    let sent = 0
    while (peer.bufferedAmount < 8 * 1024 * 1024) {
      peer.send(message)
      sent += message.length
      if (sent % (1024 * 1024) === 0) await sleep(1)
    }
    assert.ok(socket.readableLength <= socket.readableHighWaterMark + 64 * 1024, `${socket.readableLength}`)
    const read = collect(stream)
    await until('all read', () => read().length === sent)
  })

  test(`${role}: each side may close, and what was sent before is read`, async (t) => {
    const first = await connectPair(t, role)
    first.peer.send('last words', { binary: true })
    first.peer.close(1001)
    const read = collect(first.stream)
    await once(first.stream, 'end')
    assert.equal(String(read()), 'last words')
    const [code] = await once(first.peer, 'close')
    assert.equal(code, 1000)
    await until('closed', () => first.stream.destroyed && first.socket.destroyed)

    const second = await connectPair(t, role)
    second.stream.resume()
    const message = once(second.peer, 'message')
    second.stream.send([Buffer.from('last words')], assert.ifError)
    second.stream.end()
    assert.equal(String((await message)[0]), 'last words')
    assert.equal((await once(second.peer, 'close'))[0], 1000)
    await until('closed', () => second.stream.destroyed && second.socket.destroyed)
  })

  test(`${role}: a lost connection closes the stream; what is sent after a close is an error`, async (t) => {
    const lost = await connectPair(t, role)
    lost.stream.resume()
    lost.stream.on('error', () => undefined)
    lost.peer.terminate()
    await until('closed', () => lost.stream.destroyed && lost.socket.destroyed)

    const closed = await connectPair(t, role)
    closed.stream.resume()
    closed.peer.close()
    await once(closed.peer, 'close')
    const error = await new Promise((resolve) => closed.stream.send([Buffer.from('too late')], resolve))
    assert.ok(error instanceof WebSocketError)
    await until('closed', () => closed.stream.destroyed)
  })

  test(`${role}: text is an error of the peer, which is told so`, async (t) => {
    const { stream, peer } = await connectPair(t, role)
    const failed = once(stream, 'error')
    stream.resume()
    peer.send('text')
    assert.equal((await once(peer, 'close'))[0], 1002)
    assert.ok((await failed)[0] instanceof WebSocketError)
  })

  const isMasked = role === 'server'
  const huge = Buffer.from([0x82, isMasked ? 0xff : 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  for (const [what, bytes] of [
    ['text', frame(1, Buffer.alloc(3), { isMasked })],
    ['a continuation without a message', frame(0, Buffer.alloc(3), { isMasked })],
    [
      'a message inside of a message',
      Buffer.concat([
        frame(2, Buffer.alloc(3), { isMasked, isFinal: false }),
        frame(2, Buffer.alloc(3), { isMasked }),
      ]),
    ],
    ['the wrong mask', frame(2, Buffer.alloc(3), { isMasked: !isMasked })],
    ['a reserved opcode', frame(3, Buffer.alloc(3), { isMasked })],
    ['a reserved control opcode', frame(11, Buffer.alloc(3), { isMasked })],
    ['reserved bits', frame(0x42, Buffer.alloc(3), { isMasked })],
    ['a fragmented ping', frame(9, Buffer.alloc(3), { isMasked, isFinal: false })],
    ['a ping of 126 bytes', frame(9, Buffer.alloc(126), { isMasked })],
    ['a close frame of one byte', frame(8, Buffer.alloc(1), { isMasked })],
    ['a length of 2^64', huge],
  ] as const)
    test(`${role}: ${what} ends the stream with an error`, async () => {
      for (const pieces of [1, bytes.length]) {
        const [near, far] = duplexPair()
        const stream = new WebSocketConnection(near, { role })
        const sent = collect(far)
        far.on('error', () => undefined)
        const failed = once(stream, 'error')
        stream.resume()
        if (pieces === 1) far.write(bytes)
        else for (const byte of bytes) far.write(Buffer.from([byte]))
        const [error] = await failed
        assert.ok(error instanceof WebSocketError, String(error))
        assert.match(error.message, /^The peer sent a.*\.$/)
        assert.equal(near.destroyed, true)
        await until('a close frame', () => sent().length > 0)
        assert.equal(sent().readUInt16BE(sent().length - 2), 1002)
      }
    })
}

test('a peer that does not reply to a close frame is disconnected', async (t) => {
  const accepted = Promise.withResolvers<Socket>()
  const server = createTcpServer({ allowHalfOpen: true }, accepted.resolve).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = tcpConnect((server.address() as AddressInfo).port, '127.0.0.1')
  const stream = new WebSocketConnection(socket, { role: 'client' })
  const peer = await accepted.promise
  atEnd(t, () => {
    peer.destroy()
    server.close()
  })
  stream.resume()
  stream.send([Buffer.from('x')], () => {})
  stream.end()
  await once(stream, 'close')
  assert.equal(socket.destroyed, true)
})

test('what arrived together with the upgrade is read first', async () => {
  const [near, far] = duplexPair()
  const bytes = Buffer.concat(
    ['first ', 'second'].map((part) => frame(2, Buffer.from(part), { isMasked: true })),
  )
  far.write(bytes.subarray(9))
  const stream = new WebSocketConnection(near, { role: 'server', head: bytes.subarray(0, 9) })
  const read = collect(stream)
  await until('all read', () => String(read()) === 'first second')
})

test('messages of one chunk are joined, and a ping between them keeps its payload', async () => {
  const [near, far] = duplexPair()
  const stream = new WebSocketConnection(near, { role: 'client' })
  const chunks: string[] = []
  stream.on('data', (chunk) => chunks.push(String(chunk)))
  stream.resume()
  const unmasked = { isMasked: false }
  far.write(
    Buffer.concat([
      frame(2, Buffer.from('a'.repeat(50)), unmasked),
      frame(9, Buffer.from('payload of the ping'), unmasked),
      frame(2, Buffer.from('b'.repeat(10)), unmasked),
      frame(2, Buffer.from('c'.repeat(70)), unmasked),
    ]),
  )
  const [pong] = await once(far, 'data')
  assert.deepEqual(chunks, ['a'.repeat(50) + 'b'.repeat(10) + 'c'.repeat(70)])
  assert.deepEqual(
    pong,
    frame(10, Buffer.from('payload of the ping'), { isMasked: true, mask: Buffer.alloc(4) }),
  )
})

interface FrameOptions {
  isMasked: boolean
  isFinal?: boolean
  mask?: Buffer
}

/** Encodes a frame independently of the code under test. */
function frame(
  opcode: number,
  payload: Buffer,
  { isMasked, isFinal = true, mask = randomBytes(4) }: FrameOptions,
) {
  const { length } = payload
  const lengthBytes =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, length >>> 24, (length >> 16) & 255, (length >> 8) & 255, length & 255]
  lengthBytes[0] = (lengthBytes[0] as number) | (isMasked ? 0x80 : 0)
  const masked = isMasked ? payload.map((byte, index) => byte ^ (mask[index % 4] as number)) : payload
  return Buffer.concat([
    Buffer.from([(isFinal ? 0x80 : 0) | opcode, ...lengthBytes]),
    isMasked ? mask : Buffer.alloc(0),
    masked,
  ])
}

const text = (length: number) => Buffer.alloc(length, 'a')
