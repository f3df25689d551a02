// HTTP/1.1 requests as bytes: well-formed ones with any content, and corrupted ones.
import { Buffer } from 'node:buffer'
import type { Random } from '../support/random.ts'
import { text } from './values.ts'

export interface RequestParts {
  method: string
  target: string
  headers: [name: string, value: string][]
  body: Buffer | undefined
}

export interface RawRequest {
  method: string
  bytes: Buffer
  /** A complete HTTP request: it must get exactly one response. */
  isWhole: boolean
  /** Ends the connection after its response. */
  closes: boolean
}

const HEADERS: [string, () => string][] = [
  ['Accept', () => 'text/html'],
  ['Accept-Encoding', () => 'gzip, br'],
  ['X-Forwarded-For', () => '1.2.3.4:56, [::1]:7, nonsense'],
  ['X-Forwarded-Proto', () => 'https'],
  ['X-Request-Id', () => 'a'.repeat(300)],
  ['If-None-Match', () => '"x", W/"y", *'],
  ['Idempotency-Key', () => 'same'],
  ['Range', () => 'bytes=0-'],
  ['Last-Event-ID', () => '9-z'],
  ['Cookie', () => 'a=b; adit.session_token=x.y; '.repeat(20)],
  ['Origin', () => 'null'],
  ['Sec-Fetch-Site', () => 'cross-site'],
  ['X-Adit-Edge', () => 'adit_edge_x'],
  ['Traceparent', () => '00-0-0-0'],
  ['Keep-Alive', () => 'timeout=0'],
  ['TE', () => 'trailers'],
]

/** Writes a request with a random choice of framing and of additional headers. */
export function encode(
  { method, target, headers, body }: RequestParts,
  random: Random,
  closes: boolean,
): RawRequest {
  const added = random.shuffled(HEADERS).slice(0, random.whole(0, 4))
  const all = [...headers, ...added.map(([name, value]): [string, string] => [name, value()])]
  const isChunked = body !== undefined && random.chance(0.3)
  if (isChunked) all.push(['Transfer-Encoding', 'chunked'])
  else if (body !== undefined) all.push(['Content-Length', String(body.length)])
  if (body !== undefined && random.chance(0.05)) all.push(['Expect', '100-continue'])
  if (closes) all.push(['Connection', 'close'])
  const lines = all.map(([name, value]) => `${name}: ${printable(value)}\r\n`).join('')
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines}\r\n`, 'latin1')
  const framed = isChunked ? chunked(body, random) : (body ?? Buffer.alloc(0))
  return { method, bytes: Buffer.concat([head, framed]), isWhole: true, closes }
}

/** Only characters that a header value may contain. */
const printable = (value: string) => value.replace(/[^\x20-\x7e]/g, '?').slice(0, 1_000)

function chunked(body: Buffer, random: Random): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const part = body.subarray(at, at + random.whole(1, 4_096))
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
    at += part.length
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')])
}

const INSERTIONS = [
  '\r\n',
  '\n',
  '\r',
  '\0',
  '\x7f',
  ' ',
  ':',
  'Content-Length: 5\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: xchunked\r\n',
  'Host: other.example\r\n',
  ' folded: header\r\n',
  'Connection: upgrade\r\nUpgrade: websocket\r\n',
  'Connection: upgrade\r\nUpgrade: h2c\r\n',
  'CONNECT a:1 HTTP/1.1\r\n\r\n',
  'GET / HTTP/0.9\r\n\r\n',
  `X: ${'y'.repeat(66_000)}\r\n`,
]

/** The same request with bytes flipped, cut, repeated or added. It may or may not still be a request. */
export function corrupt(request: RawRequest, random: Random): RawRequest {
  let { bytes } = request
  const at = random.whole(0, bytes.length)
  switch (random.whole(0, 5)) {
    case 0:
      bytes = Buffer.from(bytes)
      bytes[at] = random.whole(0, 256)
      break
    case 1:
      bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + random.whole(1, 40))])
      break
    case 2:
      bytes = bytes.subarray(0, at)
      break
    default: {
      // After the end of a header line, where it has the most effect.
      const line = bytes.indexOf('\r\n', Math.min(at, bytes.indexOf('\r\n\r\n')))
      const place = random.chance(0.6) ? line + 2 : at
      const addition = random.chance(0.8) ? random.pick(INSERTIONS) : text(random)
      bytes = Buffer.concat([bytes.subarray(0, place), Buffer.from(addition), bytes.subarray(place)])
    }
  }
  return { ...request, bytes, isWhole: false }
}
