// What the inspector's page computes by itself: filters, differences, and what of an edited request is sent.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Exchange, ExchangeSummary, Header } from '../../../src/inspector/api.ts'
import { compareResponses } from '../../../web/src/inspector/compare/differences.ts'
import { diffLines, skipEqual } from '../../../web/src/inspector/compare/line-diff.ts'
import { matchesFilter, NO_FILTER, toQuery } from '../../../web/src/inspector/list/filter.ts'
import { readEvents } from '../../../web/src/inspector/live/event-stream.ts'
import { toEditable, toReplayRequest } from '../../../web/src/inspector/replay/edit.ts'

const summary: ExchangeSummary = {
  id: 'abcd-1',
  tunnel: 'app',
  startedAt: '2026-01-01T00:00:00.000Z',
  kind: 'http',
  state: 'complete',
  method: 'POST',
  path: '/Orders?x=1',
  host: 'app.test',
  status: 404,
  requestBytes: 0,
  responseBytes: 0,
  messages: 0,
}

const emptyBody = {
  bytes: 0,
  recordedBytes: 0,
  cut: false,
  decoded: [],
  viewCut: false,
  view: { type: 'empty' },
} as const

const exchangeWith = (headers: Header[], responseHeaders: Header[] = []): Exchange => ({
  ...summary,
  request: { httpVersion: '1.1', headers, body: emptyBody, trailers: [] },
  response: {
    httpVersion: '1.1',
    status: 404,
    reason: 'Not Found',
    headers: responseHeaders,
    body: emptyBody,
    trailers: [],
  },
  replayable: true,
  target: 'http://localhost:3000',
})

test('each field of the filter excludes requests that differ, and a status that is no status excludes none', () => {
  const matches = (change: object, request = summary) => matchesFilter(request, { ...NO_FILTER, ...change })
  for (const change of [
    {},
    { method: 'POST' },
    { path: 'orders' },
    { tunnel: 'app' },
    { kind: 'http' },
    { status: '404' },
    { status: '4XX' },
    { status: '400-499' },
    { status: '4' },
  ])
    assert.ok(matches(change), JSON.stringify(change))
  for (const change of [
    { method: 'GET' },
    { path: 'users' },
    { tunnel: 'ap' },
    { kind: 'sse' },
    { status: '405' },
    { status: '5xx' },
    { status: 'none' },
  ])
    assert.ok(!matches(change), JSON.stringify(change))
  const { status: _, ...pending } = summary
  assert.ok(matches({ status: 'none' }, pending))
  assert.ok(!matches({ status: '2xx' }, pending))
  assert.deepEqual(toQuery({ ...NO_FILTER, search: 'x', status: '4' }), { search: 'x' })
})

test('a difference has both texts: without what was added the first, without what was removed the second', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })
    .map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after)
      const without = (excluded: string) =>
        lines
          .filter(({ type }) => type !== excluded)
          .map((line) => line.text)
          .join('\n')
      assert.equal(without('added'), before)
      assert.equal(without('removed'), after)
      if (before === after) assert.ok(lines.every(({ type }) => type === 'same'))
    }),
  )
})

test('a long run of equal lines is replaced by their number, and every change is shown with its neighbors', () => {
  const before = Array.from({ length: 100 }, (_, index) => `line ${index}`)
  const lines = diffLines(before.join('\n'), before.with(50, 'changed').join('\n'))
  const shown = skipEqual(lines).map((line) =>
    line.type === 'skipped' ? line.count : `${line.type} ${line.text}`,
  )
  assert.deepEqual(shown, [
    47,
    'same line 47',
    'same line 48',
    'same line 49',
    'removed line 50',
    'added changed',
    'same line 51',
    'same line 52',
    'same line 53',
    46,
  ])
})

test('two bodies of a megabyte without a common line are compared in bounded time and memory', () => {
  const of = (mark: string) => Array.from({ length: 50_000 }, (_, index) => `${mark} ${index}`).join('\n')
  assert.equal(diffLines(of('a'), of('b')).length, 100_000)
})

test('responses are compared without the order and the case of header names', () => {
  const a = exchangeWith(
    [],
    [
      { name: 'A', value: '1' },
      { name: 'B', value: '2' },
    ],
  )
  const b = exchangeWith(
    [],
    [
      { name: 'b', value: '2' },
      { name: 'a', value: '1' },
    ],
  )
  assert.ok(compareResponses(a, b).headers.every(({ type }) => type === 'same'))
})

test('an unchanged request is sent as recorded, and masked values stay those that were recorded', () => {
  const exchange = exchangeWith([
    { name: 'Content-Length', value: '2' },
    { name: 'Authorization', value: '[masked]', masked: true },
    { name: 'X-A', value: '1' },
  ])
  const editable = toEditable(exchange)
  assert.deepEqual(toReplayRequest(exchange, editable, '{}'), {})
  assert.deepEqual(toReplayRequest(exchange, { ...editable, body: '{}' }, '{}'), {})
  const headers = editable.headers.map((field) => (field.name === 'X-A' ? { ...field, value: '2' } : field))
  assert.deepEqual(toReplayRequest(exchange, { ...editable, headers }, '{}'), {
    headers: [
      { name: 'Authorization', recorded: 1 },
      { name: 'X-A', value: '2' },
    ],
  })
})

test('an edited body has the line breaks of the recorded one, and no encoding', () => {
  const exchange = exchangeWith([
    { name: 'Content-Encoding', value: 'gzip' },
    { name: 'X-A', value: '1' },
  ])
  const edited = { ...toEditable(exchange), body: 'a\nc' }
  assert.deepEqual(toReplayRequest(exchange, edited, 'a\r\nb'), {
    headers: [{ name: 'X-A', value: '1' }],
    body: { text: 'a\r\nc' },
  })
  assert.deepEqual(toReplayRequest(exchangeWith([]), { ...edited, headers: [] }, 'a\nb'), {
    body: { text: 'a\nc' },
  })
})

test('events are read whatever chunks they arrive in', async () => {
  const text = ':\n\nevent: requests\ndata: {"a":"ä"}\n\nevent: cleared\ndata: {}\n\n'
  for (const size of [1, 7, 1000]) {
    const bytes = Buffer.from(text)
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    )
    const events = await Array.fromAsync(
      readEvents(ReadableStream.from(chunks) as ReadableStream<Uint8Array>),
    )
    assert.deepEqual(events, [
      { event: 'requests', data: '{"a":"ä"}' },
      { event: 'cleared', data: '{}' },
    ])
  }
})
