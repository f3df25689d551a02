// Once a session may transfer nothing, its readers get nothing more of what it has received.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { connectStreams } from '../../src/tunnel-protocol/connect-streams.ts'
import type { YamuxStream } from '../../src/yamux/index.ts'
import type { Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'
import { DATA, frame, SYN, socketPair, startSession } from './support.ts'

/** A session that resets its streams when it notices that it was stopped. */
async function stoppable(t: Test, onStream: (stream: YamuxStream) => void) {
  const [, connection] = await socketPair(t)
  let isStopped = false
  const { session, streams } = startSession(connection, {
    role: 'server',
    onStream,
    onTransfer() {
      if (isStopped) for (const stream of session.openStreams()) stream.destroy()
    },
  })
  return {
    streams,
    stop: () => {
      isStopped = true
    },
    /** As one read. */
    receive: (...frames: Buffer[]) => connection.emit('data', Buffer.concat(frames)),
  }
}

const open = (id: number) => frame({ type: DATA, flags: SYN, id })
const data = (id: number, payload: string) => frame({ type: DATA, id, payload })

test('a stop applies to what comes later in the same input', async (t) => {
  const received: string[] = []
  const { receive, streams, stop } = await stoppable(t, (stream) => {
    stream.on('data', (chunk) => {
      received.push(String(chunk))
      stop()
    })
  })
  receive(open(1), open(3))
  await until('they are read', () => streams.every(({ readableFlowing }) => readableFlowing))
  receive(data(1, 'first'), data(3, 'second'), data(1, 'third'))
  assert.deepEqual(received, ['first'])
  assert.ok(streams.every(({ destroyed }) => destroyed))
})

test('a stop applies to what a slow reader had not taken', async (t) => {
  const { receive, streams, stop } = await stoppable(t, () => {})
  receive(open(1), data(1, 'next'))
  const [stream = assert.fail()] = streams
  receive(data(1, 'waiting'))
  stop()
  const received: string[] = []
  stream.on('data', (chunk) => received.push(String(chunk)))
  await once(stream, 'close')
  assert.ok(!received.join().includes('waiting'), received.join())
})

test('a stop applies to what is kept back for the next read', async (t) => {
  const target = new PassThrough().on('data', () => assert.fail('received'))
  const { receive, streams, stop } = await stoppable(t, (stream) => connectStreams(stream, target))
  receive(open(1))
  await until('it is read', () => streams[0]?.readableFlowing === true)
  receive(data(1, 'x'.repeat(64 * 1024 - 12)))
  assert.ok(target.writableLength > 0)
  stop()
  await assert.rejects(once(target, 'close'), /The other side failed/)
})
