// The memory of what a connection has received at once, after its payloads were sent on.
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { connectStreams } from '../../src/tunnel-protocol/connect-streams.ts'
import type { YamuxStream } from '../../src/yamux/index.ts'
import type { Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'
import { DATA, frame, rawPeer, SYN, socketPair } from './support.ts'

const BYTES = 30 * 1024
const payload = (id: number) => String(id).repeat(BYTES)

/** A session that receives a payload for each of two streams in one read, and what the streams emit. */
async function receiveTwo(t: Test, onStream: (stream: YamuxStream) => void): Promise<Buffer[]> {
  const emitted: Buffer[] = []
  const { socket } = await rawPeer(t, {
    onStream(stream) {
      onStream(stream)
      stream.on('data', (chunk: Buffer) => emitted.push(chunk))
    },
  })
  const frames = [1, 3].map((id) => frame({ type: DATA, flags: SYN, id, payload: payload(id) }))
  socket.write(Buffer.concat(frames))
  return emitted
}

/** What is written to the socket, read at the other end. */
async function startTarget(t: Test): Promise<{ socket: Socket; text(): string }> {
  const [socket, far] = await socketPair(t)
  const read: Buffer[] = []
  far.on('data', (chunk: Buffer) => read.push(chunk))
  return { socket, text: () => Buffer.concat(read).toString() }
}

test('the memory of a read is freed when all payloads in it were sent on', async (t) => {
  const targets = [await startTarget(t), await startTarget(t)] as const
  const emitted = await receiveTwo(t, (stream) => {
    connectStreams(stream, targets[stream.id === 1 ? 0 : 1].socket)
  })
  await until('both have arrived', () => targets.every(({ text }) => text().length === BYTES))
  assert.deepEqual(
    targets.map(({ text }) => text()),
    [payload(1), payload(3)],
  )
  await until('nothing is left', () => emitted.every(({ length }) => length === 0))
})

test('the memory of a read is not freed while the user of one payload keeps it', async (t) => {
  const target = await startTarget(t)
  const emitted = await receiveTwo(t, (stream) => {
    if (stream.id === 1) connectStreams(stream, target.socket)
  })
  await until('one has arrived', () => target.text().length === BYTES)
  const [sent, kept] = emitted as [Buffer, Buffer]
  // After the callbacks of the write.
  await new Promise(setImmediate)
  assert.equal(String(sent), payload(1))
  assert.equal(String(kept), payload(3))
})
