// Heads of HTTP/1.1 responses. Local servers are not trusted: what two parsers could understand differently
// is rejected, as by llhttp in its strict mode.
import { type FailureCause, recognizeOther } from '../problems.ts'
import { isToken } from './token.ts'

/** The size of a head, of requests too: browsers send up to this much of cookies to one site. */
export const HEAD_BYTES_MAX = 64 * 1024
const HEADERS_MAX = 1_000
const STATUS_LINE = /^HTTP\/1\.([01]) ([0-9]{3})(?: ([\t\x20-\x7e\x80-\xff]*))?$/
/** Everything but control characters; tabs are allowed. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const LENGTH = /^[0-9]{1,15}$/
const CLOSE = /(?:^|[,\s])close(?:$|[,\s])/i
const UPGRADE = /(?:^|[,\s])upgrade(?:$|[,\s])/i
const ANY = /./

/** The local server sent what is not a valid response. */
export class InvalidResponse extends Error {
  override name = 'InvalidResponse'
  readonly problem: FailureCause

  constructor(message: string, problem: FailureCause = 'invalid_response') {
    super(message)
    this.problem = problem
  }
}

/** Rejects what cannot become a status line, as soon as its first bytes have arrived. */
export function requireHttp(start: string): void {
  const other = recognizeOther(start)
  if (other) throw new InvalidResponse('not a status line', other)
  if (/[^\r]\n/.test(start)) throw new InvalidResponse('line without CR')
}

/** How the end of the body is found; a number is its length. */
type Framing = number | 'chunked' | 'until close'

export interface ResponseHead {
  readonly httpVersion: '1.0' | '1.1'
  readonly status: number
  readonly reason: string
  /** Alternating names and values, in their order and spelling. */
  readonly headers: string[]
  /** What the headers say; some responses have no body whatever they say. */
  readonly framing: Framing
  /** The server keeps the connection open. */
  readonly isPersistent: boolean
}

/** Parses a status line and headers. `text` is latin1 without the empty line. */
export function parseHead(text: string): ResponseHead {
  requireHttp(text.slice(0, 'HTTP/1.'.length))
  const lineEnd = text.indexOf('\r\n')
  const statusLine = STATUS_LINE.exec(lineEnd < 0 ? text : text.slice(0, lineEnd))
  if (!statusLine) throw new InvalidResponse('invalid status line')
  const headers = lineEnd < 0 ? [] : parseHeaders(text, lineEnd + 2)
  const httpVersion = statusLine[1] === '1' ? '1.1' : '1.0'
  return {
    httpVersion,
    status: Number(statusLine[2]),
    reason: statusLine[3] ?? '',
    headers,
    framing: readFraming(headers),
    isPersistent: httpVersion === '1.1' && !hasToken(headers, 'connection', CLOSE),
  }
}

/** Parses header lines that are separated by CRLF. */
export function parseHeaders(text: string, start: number): string[] {
  const headers: string[] = []
  for (let at = start; at < text.length; ) {
    const next = text.indexOf('\r\n', at)
    const end = next < 0 ? text.length : next
    const colon = text.indexOf(':', at)
    if (colon < 0 || colon > end) throw new InvalidResponse('header without a colon')
    const name = text.slice(at, colon)
    const value = trimSpaces(text, colon + 1, end)
    if (!isToken(name) || !VALUE.test(value)) throw new InvalidResponse('invalid character in a header')
    // Parsers differ in whether a tab ends such a value.
    if (parseFraming(name, value) !== undefined && text.slice(colon, end).includes('\t'))
      throw new InvalidResponse('tab in a header that frames the body')
    headers.push(name, value)
    at = end + 2
  }
  if (headers.length > 2 * HEADERS_MAX)
    throw new InvalidResponse(`more than ${HEADERS_MAX} headers`, 'head_too_large')
  return headers
}

const isSpace = (code: number) => code === 0x20 || code === 0x09

function trimSpaces(text: string, start: number, end: number): string {
  let from = start
  let to = end
  while (from < to && isSpace(text.charCodeAt(from))) from += 1
  while (to > from && isSpace(text.charCodeAt(to - 1))) to -= 1
  return text.slice(from, to)
}

/** Two headers that frame the body are rejected, even if they agree. */
export function readFraming(headers: readonly string[]): Framing {
  let framing: Framing = 'until close'
  for (let index = 0; index < headers.length; index += 2) {
    const found = parseFraming(headers[index] as string, headers[index + 1] as string)
    if (found === undefined) continue
    if (framing !== 'until close') throw new InvalidResponse('two headers that frame the body')
    framing = found
  }
  return framing
}

function parseFraming(name: string, value: string): Framing | undefined {
  switch (name.length) {
    case 'content-length'.length:
      if (name.toLowerCase() !== 'content-length') return undefined
      if (!LENGTH.test(value)) throw new InvalidResponse('invalid Content-Length')
      return Number(value)
    case 'transfer-encoding'.length:
      if (name.toLowerCase() !== 'transfer-encoding') return undefined
      if (value.toLowerCase() !== 'chunked') throw new InvalidResponse('unknown Transfer-Encoding')
      return 'chunked'
    default:
      return undefined
  }
}

/** The server switches to the protocol that the request asked for. */
export const isUpgrade = ({ status, headers }: ResponseHead) => status === 101 && hasUpgrade(headers)

/** A request with such headers asks for another protocol, a response agrees. */
export const hasUpgrade = (headers: readonly string[]) =>
  hasToken(headers, 'connection', UPGRADE) && hasToken(headers, 'upgrade', ANY)

/** Whether a header of this name, in lower case, has a value that matches. */
function hasToken(headers: readonly string[], name: string, pattern: RegExp): boolean {
  for (let index = 0; index < headers.length; index += 2) {
    const headerName = headers[index] as string
    if (headerName.length !== name.length || headerName.toLowerCase() !== name) continue
    if (pattern.test(headers[index + 1] as string)) return true
  }
  return false
}
