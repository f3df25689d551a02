// How much the recorder does at once, and that it stops where there is too much.
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { describeMessages } from '../../src/inspector/display/describe.ts'
import { Recorder } from '../../src/inspector/recording/recorder.ts'
import { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'
import {
  compressedFrame,
  frame,
  openWebSocket,
  repeat,
  UPGRADE_REQUEST,
  UPGRADE_RESPONSE,
} from './websocket-support.ts'

const PING = frame(0x89, Buffer.alloc(0))

/** Each look at the clock takes `stepMs`. Turns are taken when the test says so. */
function createRecorder(stepMs = 1) {
  let time = 0
  let scheduled: { turn: () => void; atMs: number } | undefined
  const store = new ExchangeStore()
  const clock = {
    now: () => {
      time += stepMs
      return time
    },
    schedule: (turn: () => void, afterMs: number) => {
      scheduled = { turn, atMs: time + afterMs }
    },
  }
  const observer = new Recorder(store, clock).observer({ name: 'app', url: '', target: '' })
  const connect = () => {
    const [stream, socket] = [new PassThrough(), new PassThrough()]
    observer.onConnect(stream, socket)
    return { stream, socket }
  }
  return {
    store,
    connect,
    ...connect(),
    /** Returns how long it took, and the pause before it; undefined if none is scheduled. */
    takeTurn() {
      if (!scheduled) return undefined
      const { turn, atMs } = scheduled
      scheduled = undefined
      const pauseMs = atMs - time
      time = Math.max(time, atMs)
      const startMs = time
      turn()
      return { pauseMs, tookMs: time - startMs }
    },
  }
}

test('a chunk of many small messages is parsed in short turns, with longer pauses between them', async () => {
  const { store, stream, socket, takeTurn } = createRecorder(0.5)
  stream.write(UPGRADE_REQUEST)
  socket.write(UPGRADE_RESPONSE)
  await new Promise(setImmediate)
  while (takeTurn());
  const messages = 8_192
  stream.write(repeat(PING, messages))
  await new Promise(setImmediate)
  const [exchange] = store.all()
  const turns: { pauseMs: number; tookMs: number; parsed: number }[] = []
  for (let before = 0; ; before = exchange?.messageCount ?? 0) {
    const turn = takeTurn()
    if (!turn) break
    turns.push({ ...turn, parsed: (exchange?.messageCount ?? 0) - before })
  }
  assert.equal(exchange?.messageCount, messages)
  assert.ok(turns.length >= 8)
  assert.ok(turns.every(({ parsed }) => parsed <= 1_024))
  for (const [index, { pauseMs }] of turns.slice(1).entries())
    assert.ok(pauseMs >= 2 * (turns[index]?.tookMs ?? 0), `${pauseMs} ms`)
})

test('events are parsed in short turns, too', async () => {
  const { store, stream, socket, takeTurn } = createRecorder(4)
  stream.write('GET / HTTP/1.1\r\n\r\n')
  socket.write('HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\n\r\n')
  await new Promise(setImmediate)
  while (takeTurn());
  socket.write(repeat(Buffer.from('data\n\n'), 1_000))
  await new Promise(setImmediate)
  const [exchange] = store.all()
  for (let before = 0; takeTurn(); before = exchange?.messageCount ?? 0)
    assert.ok((exchange?.messageCount ?? 0) - before <= 50)
  assert.equal(exchange?.messageCount, 1_000)
})

test('a WebSocket with too many messages in a second is not recorded further, and says so', () => {
  const tiny = compressedFrame('x')
  const large = compressedFrame('x'.repeat(60_000))
  const floods = [repeat(PING, 30_000), repeat(tiny, 3_000), repeat(large, 600)]
  for (const flood of floods) {
    const store = new ExchangeStore()
    const parser = openWebSocket(store)
    parser.fromVisitor(flood, 0)
    const { state, problem, messageCount } = store.all()[0] ?? {}
    assert.equal(state, 'unrecorded')
    assert.match(problem ?? '', /^The WebSocket had more messages in a second than the recorder parses/)
    parser.fromVisitor(flood, 2_000)
    assert.equal(store.all()[0]?.messageCount, messageCount)
  }
})

test('a WebSocket with as many messages as the recorder parses goes on being recorded', () => {
  const store = new ExchangeStore()
  const parser = openWebSocket(store)
  for (let second = 1; second <= 5; second += 1)
    parser.fromVisitor(repeat(compressedFrame('hello'), 500), second * 1_000)
  const [exchange] = store.all()
  assert.deepEqual([exchange?.state, exchange?.messageCount], ['pending', 2_500])
})

test('binary messages are kept as bytes, and formatted when they are read', async () => {
  const store = new ExchangeStore()
  openWebSocket(store).fromVisitor(frame(0x82, Buffer.from([0, 1])), 0)
  const [exchange] = store.all()
  assert.deepEqual(exchange?.messages[0]?.content, Buffer.from([0, 1]))
  const { messages } = await describeMessages(exchange, 0)
  assert.match(messages[0]?.text ?? '', /^00000000 {2}00 01 /)
})

test('a connection that begins while there is too much to parse is listed, with the reason', async () => {
  const { store, stream, connect, takeTurn } = createRecorder()
  stream.write('POST / HTTP/1.1\r\nContent-Length: 200000\r\n\r\n')
  await new Promise(setImmediate)
  for (let chunks = 0; chunks < 200_000; chunks += 1) stream.emit('data', Buffer.from('x'))
  const late = connect()
  late.stream.write('GET /late HTTP/1.1\r\n\r\n')
  late.socket.write('HTTP/1.1 204 x\r\n\r\n')
  late.stream.destroy()
  await new Promise(setImmediate)
  while (takeTurn());
  const [, unrecorded, ...others] = store.all()
  assert.deepEqual(others, [])
  assert.deepEqual([unrecorded?.method, unrecorded?.path, unrecorded?.state], ['?', '', 'unrecorded'])
  assert.match(unrecorded?.problem ?? '', /^The recorder had too much to parse/)
})

test('a request of which no copy can be made is marked as unrecorded', async () => {
  const { store, stream, socket, takeTurn } = createRecorder()
  stream.write('GET / HTTP/1.1\r\n\r\n')
  await new Promise(setImmediate)
  // As if there were no memory for a copy.
  socket.emit('data', undefined)
  socket.write('HTTP/1.1 204 x\r\n\r\n')
  stream.destroy()
  await new Promise(setImmediate)
  while (takeTurn());
  const [exchange] = store.all()
  assert.equal(exchange?.state, 'unrecorded')
  assert.match(exchange?.problem ?? '', /^The recorder had too much to parse/)
})
