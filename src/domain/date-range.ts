// Windows of whole UTC days.
import { DAY_MS, startOfDay } from '../store/time.ts'

/** The starts of the last `days` days, today included, oldest first. */
export function lastDays(days: number, now: number): number[] {
  const today = startOfDay(now)
  return Array.from({ length: days }, (_, index) => today - (days - 1 - index) * DAY_MS)
}
