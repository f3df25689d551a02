// What the recorder keeps takes no more memory than it counts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LIMITS } from '../../src/inspector/api.ts'
import { StreamParser } from '../../src/inspector/recording/stream-parser.ts'
import { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'
import { frame, openWebSocket, repeat } from './websocket-support.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function usedBytes(): number {
  collectGarbage()
  // Memory of buffers is freed a little later.
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Of what the test itself leaves. */
const MARGIN_BYTES = 2 * 1024 * 1024

test('a message that never ends, in fragments of one byte, takes the memory that is counted', () => {
  const store = new ExchangeStore()
  const parser = openWebSocket(store)
  parser.fromVisitor(frame(0x01, Buffer.from('x')), 0)
  const fragments = repeat(frame(0x00, Buffer.from('x')), 10_000)
  const before = usedBytes()
  for (let second = 1; second <= 20; second += 1) parser.fromVisitor(fragments, 1_000 * second)
  assert.equal(store.all()[0]?.state, 'pending')
  assert.ok(usedBytes() - before < store.bytes + MARGIN_BYTES)
  assert.ok(store.bytes > 200_000)
  parser.closed(0)
})

function openEventStream(store: ExchangeStore): StreamParser {
  const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
  parser.fromVisitor(Buffer.from('GET / HTTP/1.1\r\n\r\n'), 0)
  parser.fromServer(Buffer.from('HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\n\r\n'), 0)
  return parser
}

test('of events that arrive with much else, only what is shown is kept', () => {
  const store = new ExchangeStore()
  const parser = openEventStream(store)
  const before = usedBytes()
  const field = (name: string) => `${name}: ${'x'.repeat(50)}\n`
  const event = `${field('data')}${field('event')}${field('id')}:${'c'.repeat(60_000)}\n\n`
  for (let index = 0; index < 500; index += 1) parser.fromServer(Buffer.from(event), 0)
  assert.equal(store.all()[0]?.messages.length, 500)
  assert.ok(usedBytes() - before < store.bytes + MARGIN_BYTES)
})

test('a line and an event that never end take the memory that is counted', () => {
  const store = new ExchangeStore()
  const before = usedBytes()
  const parsers = Array.from({ length: 20 }, () => openEventStream(store))
  const pieces = ['data\n', 'xy']
  for (const piece of pieces)
    for (let index = 0; index < 10_000; index += 1)
      for (const parser of parsers) parser.fromServer(Buffer.from(piece), 0)
  assert.ok(usedBytes() - before < store.bytes + MARGIN_BYTES)
  assert.ok(store.bytes > parsers.length * 20_000)
  for (const parser of parsers) parser.closed(0)
})

test('the names and ids of events count', () => {
  const store = new ExchangeStore()
  const parser = openEventStream(store)
  const before = store.bytes
  const name = 'n'.repeat(400)
  for (let index = 0; index < 100; index += 1)
    parser.fromServer(Buffer.from(`event: ${name}\nid: ${name}\ndata\n\n`), 0)
  assert.ok(store.bytes - before > 100 * 2 * 400)
})

test('trailers, heads that have not arrived completely, and data before an upgrade count', () => {
  const store = new ExchangeStore()
  const open = (request: string) => {
    const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
    parser.fromVisitor(Buffer.from(request), 0)
    return parser
  }
  const value = 'v'.repeat(10_000)
  const counted = (act: () => void) => {
    const before = store.bytes
    act()
    return store.bytes - before
  }
  const chunked = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n'
  assert.ok(counted(() => open(`${chunked}T: ${value}\r\n\r\n`)) >= 10_000)
  assert.ok(counted(() => open(`${chunked}T: ${value}`)) >= 10_000)
  const waiting = open('GET / HTTP/1.1\r\n\r\n')
  assert.ok(counted(() => waiting.fromServer(Buffer.from(`HTTP/1.1 200 x\r\nX: ${value}`), 0)) >= 10_000)
  const upgrade = open('GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  assert.ok(counted(() => upgrade.fromVisitor(Buffer.from(value), 0)) >= 10_000)
})

test('heads that have not arrived completely count before they are requests, and have a limit of their own', () => {
  const store = new ExchangeStore()
  const head = `GET / HTTP/1.1\r\nX: ${'v'.repeat(60_000)}`
  const open = () => {
    const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
    parser.fromVisitor(Buffer.from(head), 0)
    return parser
  }
  const first = open()
  assert.ok(store.bytes >= head.length)
  first.closed(0)
  assert.equal(store.bytes, 0, 'freed with the connection')

  const before = usedBytes()
  const parsers = Array.from({ length: 1_000 }, open)
  assert.ok(store.bytes <= LIMITS.recordedBytes)
  assert.ok(usedBytes() - before < store.bytes + MARGIN_BYTES)
  const states = store.all().map(({ state }) => state)
  assert.ok(states.length > 0 && states.every((state) => state === 'unrecorded'))
  const [accepted] = parsers
  accepted?.fromVisitor(Buffer.from('\r\n\r\n'), 0)
  assert.equal(store.all().at(-1)?.request.headers[1]?.length, 60_000, 'those within the limit go on')
  for (const parser of parsers) parser.closed(0)
  const [listed, kept] = [store.all().reduce((bytes, exchange) => bytes + exchange.bytes, 0), store.bytes]
  assert.equal(kept, listed)
})
