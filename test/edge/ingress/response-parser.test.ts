// The parser of responses accepts nothing that Node's strict parser rejects, and understands what both accept
// in the same way.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { InvalidResponse } from '../../../src/tunnel-protocol/http/response-head.ts'
import { ResponseParser } from '../../../src/tunnel-protocol/http/response-parser.ts'
import { createRandom, type Random } from '../../support/random.ts'

interface Parsed {
  status: number
  reason: string
  headers: string[]
  body: string
  trailers: string[]
}

/** Undefined if the response is rejected or incomplete. */
function parse(method: string, pieces: readonly Buffer[]): Parsed | undefined {
  const parsed: Parsed = { status: 0, reason: '', headers: [], body: '', trailers: [] }
  let isComplete = false
  const parser = new ResponseParser(method, false, {
    onHead: ({ status, reason, headers }) => Object.assign(parsed, { status, reason, headers }),
    onData: (data) => {
      parsed.body += data.toString('latin1')
    },
    onComplete(trailers, last) {
      isComplete = true
      parsed.body += last?.toString('latin1') ?? ''
      parsed.trailers = [...trailers]
    },
    onUpgrade: () => assert.fail('an upgrade that was not asked for'),
  })
  try {
    for (const piece of pieces) parser.push(piece)
    parser.end()
  } catch (error) {
    assert.ok(error instanceof InvalidResponse, String(error))
    return undefined
  }
  return isComplete ? parsed : undefined
}

/** The same with Node's client. */
async function parseByNode(method: string, pieces: readonly Buffer[]): Promise<Parsed | undefined> {
  const connection = new Duplex({
    read() {},
    write: (_chunk, _encoding, done) => done(),
    final: (done) => done(),
  })
  const { promise, resolve } = Promise.withResolvers<Parsed | undefined>()
  const sent = request({ method, createConnection: () => connection as Socket })
  let hasResponse = false
  sent.on('error', () => hasResponse || resolve(undefined))
  sent.on('upgrade', () => resolve(undefined))
  sent.on('response', (response) => {
    hasResponse = true
    let body = ''
    response.on('data', (data: Buffer) => {
      body += data.toString('latin1')
    })
    response.on('error', () => {})
    response.on('close', () => {
      const { statusCode = 0, statusMessage = '', rawHeaders, rawTrailers, complete } = response
      const parsed = { status: statusCode, reason: statusMessage, headers: rawHeaders, body }
      resolve(complete ? { ...parsed, trailers: rawTrailers } : undefined)
    })
  })
  sent.end()
  sent.on('close', () => hasResponse || resolve(undefined))
  for (const piece of pieces) connection.push(piece)
  connection.push(null)
  return promise
}

const NAMES = ['X-A', 'content-type', 'Set-Cookie', 'ETag', 'x_y', 'Vary', 'Connection', 'Keep-Alive']
const VALUES = [
  '',
  'a',
  'text/html; charset=utf-8',
  '  padded\t ',
  'a=b; Domain=x',
  '\xe9\xff',
  'close',
  'keep-alive',
]
const STATUSES = [
  '200 OK',
  '200',
  '204 No Content',
  '304 Not Modified',
  '404 ',
  '500 a  b\xe4',
  '999 x',
  '205 Reset',
]

function headerLines(random: Random): string {
  let lines = ''
  for (let left = random.whole(0, 4); left > 0; left--)
    lines += `${random.pick(NAMES)}:${random.pick(['', ' ', '\t', '  '])}${random.pick(VALUES)}\r\n`
  return lines
}

function chunked(random: Random, body: string): string {
  let text = ''
  for (let at = 0; at < body.length; ) {
    const size = random.whole(1, 12)
    const chunk = body.slice(at, at + size)
    text += `${random.pick(['', '0', '00'])}${chunk.length.toString(16)}${random.pick(['', '', ';a', ';a=b'])}\r\n`
    text += `${chunk}\r\n`
    at += size
  }
  return `${text}0\r\n${random.chance(0.3) ? headerLines(random) : ''}\r\n`
}

/** A valid response. */
function generate(random: Random): string {
  const body = 'abc\r\n\r\n0\r\n\x00\xffdefghijklmnopqrstuvwxyz'.slice(0, random.whole(0, 34))
  let head = random.chance(0.2)
    ? `HTTP/1.1 ${random.pick(['100 Continue', '103 Early Hints'])}\r\nA: b\r\n\r\n`
    : ''
  head += `HTTP/1.${random.pick(['1', '1', '0'])} ${random.pick(STATUSES)}\r\n${headerLines(random)}`
  const framing = random.pick(['length', 'chunked', 'close'])
  if (framing === 'length')
    return `${head}Content-Length: ${body.length}\r\n${headerLines(random)}\r\n${body}`
  if (framing === 'close') return `${head}\r\n${body}`
  return `${head}Transfer-Encoding: Chunked\r\n\r\n${chunked(random, body)}`
}

const FRAGMENTS = [
  '\r', '\n', '\r\n', '\0', ' ', '\t', ':', ';', ',', '-', '+', '0', '1', 'f', 'x', '\x7f', '\x80', '\x01',
  '\r\n ', '\r\nContent-Length: 3', '\r\nContent-Length: 3\r\nContent-Length: 3', '\r\nTransfer-Encoding: chunked',
  '\r\nTransfer-Encoding: gzip, chunked', '\r\nTransfer-Encoding:\r\n chunked', 'Content-Length: 1\r\n', ' : ', 'HTTP/1.1',
  'ffffffffffffffff', '\r\nContent-Length: 18446744073709551617', '\r\nConnection: upgrade\r\nUpgrade: x',
] // biome-ignore format: a table

function mutate(random: Random, text: string): string {
  let mutated = text
  for (let left = random.whole(1, 3); left > 0; left--) {
    const at = random.whole(0, mutated.length)
    const removed = random.chance(0.5) ? random.whole(0, 3) : 0
    mutated =
      mutated.slice(0, at) + (random.chance(0.8) ? random.pick(FRAGMENTS) : '') + mutated.slice(at + removed)
  }
  return mutated
}

function split(random: Random, text: string): Buffer[] {
  const bytes = Buffer.from(text, 'latin1')
  if (random.chance(0.4)) return [bytes]
  const pieces: Buffer[] = []
  const max = random.chance(0.3) ? 1 : 20
  for (let at = 0; at < bytes.length; ) {
    const size = random.whole(1, max)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}

const shown = (text: string) => JSON.stringify(text)

for (const seed of ['a', 'b', 'c'])
  test(`valid responses are parsed as by Node, however they are split (seed ${seed})`, async () => {
    const random = createRandom(seed)
    for (let left = 500; left > 0; left--) {
      const method = random.chance(0.2) ? 'HEAD' : 'GET'
      const text = generate(random)
      const pieces = split(random, text)
      const parsed = parse(method, pieces)
      assert.ok(parsed, shown(text))
      assert.deepEqual(parsed, await parseByNode(method, pieces), shown(text))
    }
  })

test('a tab around a value that frames the body is rejected, because parsers differ', () => {
  for (const header of ['Content-Length:\t1', 'Content-Length: 1\t ', 'Transfer-Encoding: chunked\t'])
    assert.equal(
      parse('GET', [Buffer.from(`HTTP/1.1 200 OK\r\n${header}\r\n\r\n1\r\na\r\n0\r\n\r\n`)]),
      undefined,
    )
})

for (const seed of ['d', 'e', 'f'])
  test(`what Node rejects is rejected, and what both accept means the same (seed ${seed})`, async () => {
    const random = createRandom(seed)
    for (let left = 1_500; left > 0; left--) {
      const method = random.chance(0.2) ? 'HEAD' : 'GET'
      const text = mutate(random, generate(random))
      const pieces = split(random, text)
      const parsed = parse(method, pieces)
      if (parsed) assert.deepEqual(parsed, await parseByNode(method, pieces), shown(text))
    }
  })
