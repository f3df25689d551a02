// What is recorded does not depend on how the bytes of a connection were split.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '../../src/inspector/api.ts'
import { StreamParser } from '../../src/inspector/recording/stream-parser.ts'
import { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'
import { createRandom, type Random } from '../support/random.ts'

type Part = readonly [from: 'visitor' | 'server', bytes: string]

/** Records a conversation, and describes what is kept. */
function record(parts: readonly Part[], split: (bytes: Buffer) => Buffer[], isClosed = true) {
  const store = new ExchangeStore()
  const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
  for (const [from, bytes] of parts)
    for (const piece of split(Buffer.from(bytes, 'latin1')))
      if (from === 'visitor') parser.fromVisitor(piece, 0)
      else parser.fromServer(piece, 0)
  if (isClosed) parser.closed(0)
  return store.all().map(({ method, path, kind, state, problem, request, response, messages }) => ({
    ...{ method, path, kind, state, problem },
    body: request.body.content.toString('latin1'),
    status: response?.status,
    response: response?.body.content.toString('latin1'),
    trailers: [...request.trailers, ...(response?.trailers ?? [])],
    messages: messages.map(({ from, type, content, bytes, event }) => [
      from,
      type,
      String(content),
      bytes,
      event,
    ]),
  }))
}

const whole = (bytes: Buffer) => [bytes]
const bytewise = (bytes: Buffer) => Array.from(bytes, (_, index) => bytes.subarray(index, index + 1))
const randomly = (random: Random) => (bytes: Buffer) => {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; ) {
    const length = random.whole(1, 40)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

const UPGRADE = 'Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n'
const masked = (header: string, text: string) =>
  `${header}\x01\x02\x03\x04${Array.from(text, (character, index) =>
    String.fromCharCode(character.charCodeAt(0) ^ ((index & 3) + 1)),
  ).join('')}`

const CONVERSATIONS: Record<string, readonly Part[]> = {
  'bodies of every framing': [
    ['visitor', 'GET /1?a=b HTTP/1.1\r\nHost: x\r\n\r\n'],
    [
      'server',
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
    ],
    [
      'visitor',
      'POST /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n',
    ],
    ['server', 'HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n0\r\nX: 2\r\n\r\n'],
    ['visitor', 'HEAD /3 HTTP/1.1\r\n\r\n'],
    ['server', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n'],
    ['visitor', 'PUT /4 HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody'],
    ['server', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['visitor', 'GET /5 HTTP/1.1\r\n\r\n'],
    ['server', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf'],
  ],
  'a response before the request has ended': [
    ['visitor', 'POST /early HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc'],
    ['server', 'HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno'],
    ['visitor', 'def'],
    ['visitor', 'GET /next HTTP/1.1\r\n\r\n'],
    ['server', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'],
  ],
  'a WebSocket with fragments and control frames between them': [
    ['visitor', `GET /ws HTTP/1.1\r\n${UPGRADE}`],
    [
      'server',
      `HTTP/1.1 101 Switching Protocols\r\n${UPGRADE}\x01\x03abc\x89\x01p\x80\x03def\x82\x7e\x01\x2c${'z'.repeat(300)}`,
    ],
    ['visitor', masked('\x81\x85', 'hello') + masked('\x88\x84', '\x03\xe8ok')],
  ],
  'an upgrade that is declined, and a request behind it': [
    ['visitor', `GET /ws HTTP/1.1\r\n${UPGRADE}GET /behind HTTP/1.1\r\n\r\n`],
    ['server', 'HTTP/1.1 400 Bad Request\r\nContent-Length: 1\r\n\r\nx'],
    ['server', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny'],
  ],
  'an event stream': [
    ['visitor', 'GET /events HTTP/1.1\r\n\r\n'],
    ['server', 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['server', '19\r\nevent: e\r\ndata: 1\r\ndata\r\n\r\n\r\n6\r\ndata:2\r\n2\r\n\r\r\r\n0\r\n\r\n'],
  ],
  'what is not HTTP': [
    ['visitor', 'SSH-2.0-client\r\n\r\n'],
    ['server', 'SSH-2.0-server\r\n\r\n'],
  ],
}

test('the same bytes are recorded in the same way, however they were split', () => {
  const random = createRandom('splits')
  for (const [name, parts] of Object.entries(CONVERSATIONS)) {
    const expected = record(parts, whole)
    assert.deepEqual(record(parts, bytewise), expected, name)
    for (let run = 0; run < 50; run += 1) assert.deepEqual(record(parts, randomly(random)), expected, name)
  }
})

test('every framing of a body, early responses and declined upgrades are understood', () => {
  const bodies = record(CONVERSATIONS['bodies of every framing'] ?? [], whole)
  assert.deepEqual(
    bodies.map(({ path, state, status, body, response, trailers }) => [
      path,
      state,
      status,
      body,
      response,
      trailers,
    ]),
    [
      ['/1?a=b', 'complete', 200, '', 'hello', []],
      ['/2', 'complete', 201, 'abcde', 'wiki', ['T', '1', 'X', '2']],
      ['/3', 'complete', 200, '', '', []],
      ['/4', 'complete', 204, 'body', '', []],
      ['/5', 'aborted', 200, '', 'half', []],
    ],
  )
  const early = record(CONVERSATIONS['a response before the request has ended'] ?? [], whole)
  assert.deepEqual(
    early.map(({ body, status }) => [body, status]),
    [
      ['abcdef', 413],
      ['', 200],
    ],
  )
  const declined = record(CONVERSATIONS['an upgrade that is declined, and a request behind it'] ?? [], whole)
  assert.deepEqual(
    declined.map(({ path, response }) => [path, response]),
    [
      ['/ws', 'x'],
      ['/behind', 'y'],
    ],
  )
})

test('frames of a WebSocket become messages', () => {
  const [recorded] = record(
    CONVERSATIONS['a WebSocket with fragments and control frames between them'] ?? [],
    whole,
  )
  assert.deepEqual([recorded?.kind, recorded?.state], ['websocket', 'complete'])
  assert.deepEqual(
    recorded?.messages.map(([from, type, content, bytes]) => [
      from,
      type,
      String(content).slice(0, 12),
      bytes,
    ]),
    [
      ['server', 'ping', 'p', 1],
      ['server', 'text', 'abcdef', 6],
      ['server', 'binary', 'z'.repeat(12), 300],
      ['client', 'text', 'hello', 5],
      ['client', 'close', 'ok', 4],
    ],
  )
})

test('an upgrade is recognized in any of several Connection headers', () => {
  const several = 'Connection: keep-alive\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const [recorded] = record(
    [
      ['visitor', `GET /ws HTTP/1.1\r\n${several}`],
      ['server', `HTTP/1.1 101 x\r\n${UPGRADE}\x81\x02hi`],
    ],
    whole,
  )
  assert.deepEqual([recorded?.kind, recorded?.messages.length], ['websocket', 1])
})

test('the version of HTTP is that of the response', () => {
  for (const version of ['1.0', '1.1']) {
    const store = new ExchangeStore()
    const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
    parser.fromVisitor(Buffer.from('GET / HTTP/1.1\r\n\r\n'), 0)
    parser.fromServer(Buffer.from(`HTTP/${version} 204 x\r\n\r\n`), 0)
    assert.equal(store.all()[0]?.response?.httpVersion, version)
  }
})

test('what cannot be parsed is marked, with the reason', () => {
  const request: Part = ['visitor', 'GET / HTTP/1.1\r\n\r\n']
  const cases: [Part[], RegExp][] = [
    [[request, ['server', 'SSH-2.0-server\r\n']], /could not be parsed: not a status line/],
    [[request, request], /a request before the response to the last one/],
    [
      [request, ['server', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n']],
      /invalid size of a chunk/,
    ],
    [
      [
        ['visitor', `GET / HTTP/1.1\r\n${UPGRADE}`],
        ['server', `HTTP/1.1 101 x\r\n${UPGRADE}\x80\x01a`],
      ],
      /out of order/,
    ],
  ]
  for (const [parts, reason] of cases) {
    const [recorded] = record(parts, whole, false)
    assert.equal(recorded?.state, 'unrecorded')
    assert.match(recorded?.problem ?? '', reason)
  }
  const [notHttp, ...others] = record(CONVERSATIONS['what is not HTTP'] ?? [], whole)
  assert.deepEqual([notHttp?.method, notHttp?.path, notHttp?.state], ['?', '', 'unrecorded'])
  assert.match(notHttp?.problem ?? '', /could not be parsed: invalid request line/)
  assert.deepEqual(others, [])
})

test('the last request that is recorded of a connection says that later ones are not', () => {
  const request: Part = ['visitor', 'GET / HTTP/1.1\r\n\r\n']
  const response: Part = ['server', 'HTTP/1.1 204 x\r\n\r\n']
  const invalid: Part = ['visitor', 'invalid\r\n\r\n']
  const states = ['complete', 'unrecorded']
  for (const [index, parts] of [
    [request, response, invalid],
    [request, invalid],
  ].entries()) {
    const recorded = record([...parts, response, request, response], whole)
    assert.deepEqual(
      recorded.map(({ state }) => state),
      [states[index]],
    )
    assert.match(recorded[0]?.problem ?? '', /Later requests of the same connection are not recorded\.$/)
  }
  const store = new ExchangeStore()
  const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
  for (const [from, bytes] of [request, response])
    parser[from === 'visitor' ? 'fromVisitor' : 'fromServer'](Buffer.from(bytes), 0)
  parser.fail('Overloaded.')
  assert.match(store.all()[0]?.problem ?? '', /^Overloaded\. Later requests/)
})

test('WebSockets whose messages never end take bounded memory, and make room for others', () => {
  const store = new ExchangeStore()
  const deflate = 'Sec-WebSocket-Extensions: permessage-deflate\r\n'
  const parsers = Array.from({ length: 450 }, (_, index) => {
    const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
    parser.fromVisitor(Buffer.from(`GET /${index} HTTP/1.1\r\n${UPGRADE}`), 0)
    parser.fromServer(Buffer.from(`HTTP/1.1 101 x\r\n${deflate}${UPGRADE}`), 0)
    return parser
  })
  // The first fragment of a compressed message, without a mask, of which the rest is missing.
  const start = Buffer.concat([Buffer.from([0x41, 127, 0, 0, 0, 0, 0, 4, 0, 0]), Buffer.alloc(200_000)])
  for (const parser of parsers) parser.fromVisitor(start, 0)
  assert.ok(store.bytes <= LIMITS.recordedBytes)
  assert.ok(store.evicted > 100)
  const latest = store.all().at(-1)
  assert.deepEqual([latest?.path, latest?.state], ['/449', 'pending'])
  assert.ok((latest?.bytes ?? 0) > 200_000)
})

test('requests without a response make room for those that complete', () => {
  const store = new ExchangeStore()
  const open = (path: string) => {
    const parser = new StreamParser(store, { name: 'app', url: '', target: '' })
    parser.fromVisitor(Buffer.from(`GET ${path} HTTP/1.1\r\n\r\n`), 0)
    return parser
  }
  for (let index = 0; index < LIMITS.exchanges; index += 1) open('/slow')
  for (let index = 0; index < LIMITS.exchanges; index += 1) {
    open(`/${index}`).fromServer(Buffer.from('HTTP/1.1 204 x\r\n\r\n'), 0)
    open('/slow')
  }
  const paths = store.all().map(({ path }) => path)
  assert.equal(paths.length, LIMITS.exchanges)
  const complete = paths.filter((path) => path !== '/slow')
  assert.equal(complete.length, LIMITS.exchanges / 2)
  assert.equal(complete.at(-1), `/${LIMITS.exchanges - 1}`)
})
