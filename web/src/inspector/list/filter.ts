// What the list shows. The search looks into headers, bodies and messages, so the tunnel client does it; the
// rest is compared here, because it is about what the list has.
import type { ExchangeSummary, ListQuery } from '../../../../src/inspector/api.ts'

export interface Filter {
  readonly search: string
  readonly method: string
  readonly status: string
  readonly path: string
  readonly tunnel: string
  readonly kind: string
}

export const NO_FILTER: Filter = { search: '', method: '', status: '', path: '', tunnel: '', kind: '' }

export const countFilters = ({ search: _, ...fields }: Filter): number =>
  Object.values(fields).filter(Boolean).length

/** Undefined if the text is none: `404`, `4xx`, `400-499`, or `none`. */
export function parseStatus(text: string): { from: number; to: number } | 'none' | undefined {
  if (text.toLowerCase() === 'none') return 'none'
  const [, digit, from, to = from] = /^(?:([1-5])xx|(\d{3})(?:-(\d{3}))?)$/i.exec(text) ?? []
  if (digit !== undefined) return { from: Number(digit) * 100, to: Number(digit) * 100 + 99 }
  return from === undefined ? undefined : { from: Number(from), to: Number(to) }
}

/** All but the search. A status that is not complete yet filters nothing. */
export function matchesFilter(request: ExchangeSummary, filter: Filter): boolean {
  const { method, path, tunnel, kind } = filter
  if (method && request.method !== method) return false
  if (path && !request.path.toLowerCase().includes(path.toLowerCase())) return false
  if (tunnel && request.tunnel !== tunnel) return false
  if (kind && request.kind !== kind) return false
  const status = parseStatus(filter.status)
  if (status === undefined) return true
  if (status === 'none' || request.status === undefined)
    return status === 'none' && request.status === undefined
  return request.status >= status.from && request.status <= status.to
}

/** For requests to the API that select by the same filter. */
export function toQuery(filter: Filter): ListQuery {
  const { status, kind, ...texts } = filter
  const query = { ...texts, kind, status: parseStatus(status) === undefined ? '' : status }
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ''))
}
