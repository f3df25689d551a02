// Request bodies. All content types are parsed here, so that no spelling of a type can bypass validation.
import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { FORM_TYPE } from '../../../contract/operation.ts'
import { invalid } from '../../domain/fault.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Kinds of bytes outside of strings. */
const OTHER = 0
const OPEN = 1
const CLOSE = 2
const COMMA = 3
const STRING = 4
const kinds = new Uint8Array(256)
for (const [characters, kind] of [
  ['[{', OPEN],
  [']}', CLOSE],
  [',', COMMA],
  ['"', STRING],
] as const)
  for (const byte of Buffer.from(characters)) kinds[byte] = kind

/** Smaller bodies are parsed within two milliseconds, whatever they contain. */
const UNCHECKED_BYTES_MAX = 16 * 1024
/** Nested values take longest to parse: 4 MiB of brackets block the event loop for most of a second. */
const DEPTH_MAX = 16
/** The largest valid usage report has 40,000. */
const VALUES_MAX = 50_000

/** A body sent to an operation that takes none is ignored. A missing body is read as `{}`. */
export function parseBody(request: FastifyRequest, bytes: Buffer): unknown {
  const { operation, takesBody } = request.routeOptions.config
  if (!(operation?.body || takesBody) || bytes.length === 0) return {}
  const isForm = operation?.oauth === 'form'
  requireType(request.headers['content-type'], isForm ? FORM_TYPE : 'application/json')
  if (!isUtf8(bytes)) throw invalid('/body', 'must be UTF-8')
  if (isForm) return parseForm(bytes.toString('utf8'))
  if (bytes.length > UNCHECKED_BYTES_MAX) requireSimple(bytes)
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw invalid('/body', 'must be valid JSON')
  }
}

/** RFC 6749, section 3.2: parameters must not repeat, and a parameter without a value counts as omitted. */
function parseForm(text: string): Record<string, string> {
  const parameters = [...new URLSearchParams(text)].filter(([, value]) => value !== '')
  const form = new Map(parameters)
  if (form.size < parameters.length) throw invalid('/body', 'must not repeat a parameter')
  return Object.fromEntries(form)
}

function requireType(contentType: string | undefined, expected: string): void {
  if (contentType === expected) return
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase())
  if (type !== expected) throw invalid('/headers/content-type', `must be ${expected}`)
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))
  if (charset && !/^charset="?utf-?8"?$/.test(charset))
    throw invalid('/headers/content-type', 'must not name a charset other than utf-8')
}

/**
 * Limits the structure of a large body before it is parsed, in one pass over its bytes outside of strings.
 * The table saves comparing each byte with each of the characters.
 */
function requireSimple(bytes: Buffer): void {
  let depth = 0
  let values = 0
  for (let at = 0; at < bytes.length; at++) {
    const kind = kinds[bytes[at] as number]
    if (kind === OTHER) continue
    if (kind === STRING) at = endOfString(bytes, at)
    else if (kind === CLOSE) depth -= 1
    else {
      // Each value follows a bracket or a comma, so these are counted.
      values += 1
      if (kind === OPEN) depth += 1
      if (depth > DEPTH_MAX) throw invalid('/body', `must not be nested more than ${DEPTH_MAX} levels deep`)
      if (values > VALUES_MAX) throw invalid('/body', `must not hold more than ${VALUES_MAX} values`)
    }
  }
}

function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1
  for (let byte = bytes[at]; byte !== undefined && byte !== QUOTE; byte = bytes[at])
    at += byte === BACKSLASH ? 2 : 1
  return at
}
