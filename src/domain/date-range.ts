// Ranges of UTC days.
import { DAY_MS, startOfDay } from '../time.ts'

/** Start times of the last `days` days, including today, oldest first. */
export function lastDays(days: number, now: number): number[] {
  const today = startOfDay(now)
  return Array.from({ length: days }, (_, index) => today - (days - 1 - index) * DAY_MS)
}
