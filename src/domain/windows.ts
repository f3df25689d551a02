// Windows of whole UTC days.
import { DAY_MS } from '../store/usage-report.ts'

export const startOfDay = (ms: number): number => ms - (ms % DAY_MS)

export const isoOf = (ms: number): string => new Date(ms).toISOString()

export const isoOrNull = (ms: number | null): string | null => (ms === null ? null : isoOf(ms))

/** The starts of the last `days` days, today included, oldest first. */
export function lastDays(days: number, now: number): number[] {
  const today = startOfDay(now)
  return Array.from({ length: days }, (_, index) => today - (days - 1 - index) * DAY_MS)
}
