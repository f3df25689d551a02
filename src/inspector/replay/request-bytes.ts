// The bytes of a replayed request.

import { isToken } from '../../tunnel-protocol/http/token.ts'
import { FRAMING_HEADERS, type ReplayHeader, type ReplayRequest } from '../api.ts'
import { REQUEST_HEAD_BYTES_MAX } from '../recording/request-parser.ts'
import { findHeader, type RecordedExchange } from '../store/exchange.ts'

const METHOD_CHARS_MAX = 64
const NAME_CHARS_MAX = 256
const PATH = /^\/[\x21-\x7e\x80-\xff]{0,69631}$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]{0,69632}$/
const HEADERS_MAX = 500
/** Their requests have Content-Length: 0 if the body is empty. */
const WITH_BODY = new Set(['POST', 'PUT', 'PATCH'])

type RecordedHeader = Extract<ReplayHeader, { recorded: number }>

/** The message is for the user. */
export class InvalidReplay extends Error {
  override name = 'InvalidReplay'
}

/** As it was recorded, except for what frames a body in chunks: its parts are joined to one chunk. */
export function recordedBytes({ method, path, request }: RecordedExchange): Buffer {
  const { headers, body, trailers, httpVersion } = request
  const head = toHead(method, path, httpVersion, headers)
  if (findHeader(headers, 'transfer-encoding') === undefined) return Buffer.concat([head, body.content])
  const chunk =
    body.content.length === 0
      ? []
      : [latin1(`${body.content.length.toString(16)}\r\n`), body.content, latin1('\r\n')]
  return Buffer.concat([head, ...chunk, latin1(`0\r\n${headerLines(trailers)}\r\n`)])
}

/** With the changes of `edit`; the rest is as it was recorded. Throws InvalidReplay. */
export function editedBytes(exchange: RecordedExchange, edit: ReplayRequest): Buffer {
  const { request } = exchange
  const { method = exchange.method, path = exchange.path } = edit
  if (!isToken(method, METHOD_CHARS_MAX)) throw new InvalidReplay('Invalid method.')
  if (!PATH.test(path))
    throw new InvalidReplay('Invalid path (expected one that starts with / and has no spaces).')
  const body = readBody(exchange, edit)
  const headers = edit.headers ? readHeaders(edit.headers, request.headers) : request.headers
  const kept: string[] = []
  for (let index = 0; index < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2)
    if (!FRAMING_HEADERS.has(name.toLowerCase())) kept.push(name, value)
  }
  if (body.length > 0 || WITH_BODY.has(method)) kept.push('Content-Length', String(body.length))
  const head = toHead(method, path, '1.1', kept)
  if (head.length > REQUEST_HEAD_BYTES_MAX)
    throw new InvalidReplay(
      `The path and the headers have ${head.length} bytes (expected at most ${REQUEST_HEAD_BYTES_MAX}).`,
    )
  return Buffer.concat([head, body])
}

function readBody({ request }: RecordedExchange, { body }: ReplayRequest): Buffer {
  if (body === undefined) {
    if (request.body.isCut) throw new InvalidReplay('The body was not recorded as a whole. Pass a body.')
    return request.body.content
  }
  return 'text' in body ? Buffer.from(body.text) : Buffer.from(body.base64, 'base64')
}

function readHeaders(headers: NonNullable<ReplayRequest['headers']>, recorded: readonly string[]): string[] {
  if (headers.length > HEADERS_MAX)
    throw new InvalidReplay(`Too many headers (expected at most ${HEADERS_MAX}).`)
  return headers.flatMap((header) => {
    if (!isToken(header.name, NAME_CHARS_MAX)) throw new InvalidReplay('Invalid name of a header.')
    const value = 'recorded' in header ? readRecorded(header, recorded) : header.value
    if (!VALUE.test(value)) throw new InvalidReplay(`Invalid value of the header "${header.name}".`)
    return [header.name, value]
  })
}

/** Under another name, a value that is masked could be sent to where it is shown. */
function readRecorded({ name, recorded: position }: RecordedHeader, recorded: readonly string[]): string {
  const value = recorded[2 * position + 1]
  if (value === undefined || recorded[2 * position]?.toLowerCase() !== name.toLowerCase())
    throw new InvalidReplay(`There is no recorded header "${name}" at position ${position}. Pass a value.`)
  return value
}

const latin1 = (text: string) => Buffer.from(text, 'latin1')

const toHead = (method: string, path: string, httpVersion: string, headers: readonly string[]) =>
  latin1(`${method} ${path} HTTP/${httpVersion}\r\n${headerLines(headers)}\r\n`)

function headerLines(headers: readonly string[]): string {
  let lines = ''
  for (let index = 0; index < headers.length; index += 2)
    lines += `${headers[index]}: ${headers[index + 1]}\r\n`
  return lines
}
