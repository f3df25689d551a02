// Reads the input of requests to the API.
import {
  type ExchangeSummary,
  LIMITS,
  type ListQuery,
  type ReplayHeader,
  type ReplayRequest,
  SIGNATURE_SCHEMES,
  type SignatureRequest,
} from '../api.ts'
import { ApiFailure } from './responses.ts'

const KINDS: readonly ExchangeSummary['kind'][] = ['http', 'websocket', 'sse']
const TEXTS = ['tunnel', 'method', 'status', 'path', 'since', 'search', 'cursor'] as const

const invalid = (message: string) => new ApiFailure('invalid_request', message)

export function readListQuery(params: URLSearchParams): ListQuery {
  const query: Partial<Record<(typeof TEXTS)[number], string>> = {}
  for (const name of TEXTS) {
    const value = params.get(name)
    if (!value) continue
    if (value.length > LIMITS.queryChars)
      throw invalid(`"${name}" is too long (expected at most ${LIMITS.queryChars} characters).`)
    query[name] = value
  }
  const kindText = params.get('kind')
  const kind = KINDS.find((each) => each === kindText)
  if (kindText && !kind) throw invalid(`Invalid "kind" (expected ${KINDS.join(', ')}).`)
  const limit = readNumber(params, 'limit', 1, LIMITS.pageSize)
  return { ...query, ...(kind && { kind }), ...(limit !== undefined && { limit }) }
}

export function readNumber(
  params: URLSearchParams,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const text = params.get(name)
  if (text === null || text === '') return undefined
  const value = /^\d{1,15}$/.test(text) ? Number(text) : -1
  if (value < min || value > max) throw invalid(`Invalid "${name}" (expected ${min} to ${max}).`)
  return value
}

export const isTrue = (params: URLSearchParams, name: string): boolean => params.get(name) === 'true'

export function readReplayRequest(input: Record<string, unknown>): ReplayRequest {
  const { method, path, headers, body, ...others } = input
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalid(`Unknown member "${unknown.slice(0, 50)}".`)
  if (method !== undefined && typeof method !== 'string') throw invalid('"method" must be a string.')
  if (path !== undefined && typeof path !== 'string') throw invalid('"path" must be a string.')
  if (headers !== undefined && !(Array.isArray(headers) && headers.every(isReplayHeader)))
    throw invalid('"headers" must be an array of { name, value } or { name, recorded }.')
  if (body !== undefined && !isReplayBody(body)) throw invalid('"body" must be { text } or { base64 }.')
  return {
    ...(method !== undefined && { method }),
    ...(path !== undefined && { path }),
    ...(headers !== undefined && { headers }),
    ...(body !== undefined && { body }),
  }
}

function isReplayHeader(value: unknown): value is ReplayHeader {
  const { name, value: text, recorded } = (value ?? {}) as Record<string, unknown>
  if (typeof name !== 'string') return false
  if (recorded === undefined) return typeof text === 'string'
  return text === undefined && Number.isSafeInteger(recorded) && (recorded as number) >= 0
}

function isReplayBody(value: unknown): value is NonNullable<ReplayRequest['body']> {
  const { text, base64 } = (value ?? {}) as Record<string, unknown>
  return typeof text === 'string' ? base64 === undefined : text === undefined && typeof base64 === 'string'
}

export function readSignatureRequest({ scheme, secret }: Record<string, unknown>): SignatureRequest {
  const known = SIGNATURE_SCHEMES.find((each) => each === scheme)
  if (!known) throw invalid(`Invalid "scheme" (expected ${SIGNATURE_SCHEMES.join(', ')}).`)
  if (typeof secret !== 'string' || secret === '') throw invalid('"secret" must be a string.')
  return { scheme: known, secret }
}
