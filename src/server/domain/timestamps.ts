// Timestamps in ISO 8601, as on the wire.
import { invalid } from './fault.ts'

export const toIso = (ms: number): string => new Date(ms).toISOString()

export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))

/**
 * Stricter than `Date.parse`, which takes 30 February for 2 March, and 24:00 for the next day. `day` is a day
 * that exists, with which most timestamps begin. Undefined if there is no such time.
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
