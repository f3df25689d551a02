// The memory of what a connection has received at once, after its payloads were sent on.
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { connectStreams } from '../../src/tunnel-protocol/connect-streams.ts'
import { WebSocketConnection } from '../../src/tunnel-protocol/websocket.ts'
import { BINARY, createHeader } from '../../src/tunnel-protocol/websocket-frames.ts'
import type { YamuxStream } from '../../src/yamux/index.ts'
import type { Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'
import { DATA, frame, SYN, socketPair, startSession } from './support.ts'

const BYTES = 30 * 1024
const payload = (id: number) => String(id).repeat(BYTES)

/** A read that fills its memory. */
const twoFrames = () =>
  Buffer.concat([1, 3].map((id) => frame({ type: DATA, flags: SYN, id, payload: payload(id) })))

/** A read that leaves some of its memory to the next one. */
function twoFramesOfMore(): Buffer {
  const frames = twoFrames()
  const memory = Buffer.allocUnsafeSlow(frames.length + 1)
  memory.set(frames)
  return memory.subarray(0, frames.length)
}

/** A session that receives a payload for each of two streams in one read, and what the streams emit. */
async function receive(t: Test, input: Buffer, onStream: (stream: YamuxStream) => void): Promise<Buffer[]> {
  const emitted: Buffer[] = []
  const [, connection] = await socketPair(t)
  startSession(connection, {
    role: 'server',
    onStream(stream) {
      onStream(stream)
      stream.on('data', (chunk: Buffer) => emitted.push(chunk))
    },
  })
  connection.emit('data', input)
  await until('both are emitted', () => emitted.length === 2)
  return emitted
}

/** What is written to the socket, read at the other end. */
async function startTarget(t: Test): Promise<{ socket: Socket; text(): string }> {
  const [socket, far] = await socketPair(t)
  const read: Buffer[] = []
  far.on('data', (chunk: Buffer) => read.push(chunk))
  return { socket, text: () => Buffer.concat(read).toString() }
}

/** Sends both payloads on. */
async function sendBoth(t: Test, input: Buffer): Promise<Buffer[]> {
  const targets = [await startTarget(t), await startTarget(t)] as const
  const emitted = await receive(t, input, (stream) => {
    connectStreams(stream, targets[stream.id === 1 ? 0 : 1].socket)
  })
  await until('both have arrived', () => targets.every(({ text }) => text().length === BYTES))
  assert.deepEqual(
    targets.map(({ text }) => text()),
    [payload(1), payload(3)],
  )
  return emitted
}

/** After the callbacks of writes. */
const afterWrites = () => new Promise((resolve) => setTimeout(resolve, 100))

test('the memory of a read is freed when all payloads in it were sent on', async (t) => {
  const emitted = await sendBoth(t, twoFrames())
  await until('nothing is left', () => emitted.every(({ length }) => length === 0))
})

test('the memory of a read is not freed while the user of one payload keeps it', async (t) => {
  const target = await startTarget(t)
  const [sent, kept] = await receive(t, twoFrames(), (stream) => {
    if (stream.id === 1) connectStreams(stream, target.socket)
  })
  await until('one has arrived', () => target.text().length === BYTES)
  await afterWrites()
  assert.equal(String(sent), payload(1))
  assert.equal(String(kept), payload(3))
})

test('memory that a read has not filled is not freed, because the next read gets the rest', async (t) => {
  const emitted = await sendBoth(t, twoFramesOfMore())
  await afterWrites()
  assert.deepEqual(emitted.map(String), [payload(1), payload(3)])
})

test('a WebSocket says whether what it has received is all that uses its memory', async () => {
  const results: unknown[] = []
  for (const frames of [twoFrames(), twoFramesOfMore()]) {
    const socket = new PassThrough()
    const connection = new WebSocketConnection(socket, { role: 'client' })
    connection.on('data', (received: Buffer, isOnlyUser) => results.push([received.length, isOnlyUser]))
    connection.resume()
    const message = Buffer.concat([createHeader(BINARY, frames.length, false, 0), frames])
    const read = Buffer.allocUnsafeSlow(message.length + frames.buffer.byteLength - frames.length)
    read.set(message)
    socket.write(read.subarray(0, message.length))
  }
  await afterWrites()
  const { length } = twoFrames()
  assert.deepEqual(results, [
    [length, true],
    [length, false],
  ])
})
