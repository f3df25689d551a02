// Timestamps in ISO 8601, as on the wire.
import { invalid } from './fault.ts'

export const toIso = (ms: number): string => new Date(ms).toISOString()

export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))

/**
 * Stricter than `Date.parse`, which accepts 30 February and 24:00. Undefined if there is no such time. `day`
 * is an existing day that the text may begin with, which makes the check faster.
 */
export function parseTime(text: string, day?: string): number | undefined {
  const time = Date.parse(text)
  const isExisting =
    (day !== undefined && text.startsWith(day)) || new Date(time).getUTCDate() === Number(text.slice(8, 10))
  return Number.isNaN(time) || !isExisting ? undefined : time
}

export function parseTimestamp(text: string, path: () => string, day?: string): number {
  const time = parseTime(text, day)
  if (time === undefined) throw invalid(path(), 'must be an existing date and time')
  return time
}
