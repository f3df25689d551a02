// The filter of the audit log, which is in the URL of the page.
import { DAY_MS } from '../../../src/lib/time.ts'

const names = ['actor', 'action', 'target', 'from', 'to'] as const

/** `from` and `to` are UTC days, both included. */
export type AuditFilter = { [Name in (typeof names)[number]]?: string }

export const readFilter = (parameters: URLSearchParams): AuditFilter =>
  Object.fromEntries(names.flatMap((name) => (parameters.get(name) ? [[name, parameters.get(name)]] : [])))

/** The filter as the API expects it. */
export function toRequest({ from, to, ...filter }: AuditFilter) {
  return {
    ...filter,
    ...(from !== undefined && { from: dayStart(from, 0) }),
    ...(to !== undefined && { to: dayStart(to, 1) }),
  }
}

/** A URL may contain any text; the API rejects it. */
function dayStart(day: string, daysLater: number): string {
  const ms = Date.parse(day)
  return Number.isNaN(ms) ? day : new Date(ms + daysLater * DAY_MS).toISOString()
}
