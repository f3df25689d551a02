// Ranges of UTC days.
import { DAY_MS, startOfDay } from '../../lib/time.ts'
import { toIso } from './timestamps.ts'

/** Start times of the last `days` days, including today, oldest first. */
export function lastDays(days: number, now: number): number[] {
  const today = startOfDay(now)
  return Array.from({ length: days }, (_, index) => today - (days - 1 - index) * DAY_MS)
}

const CACHED_DAYS_MAX = 1_000
const isoByDay = new Map<number, string>()

/** Cached, because formatting the days of a year takes as long as reading their usage. */
export function dayToIso(day: number): string {
  const known = isoByDay.get(day)
  if (known !== undefined) return known
  if (isoByDay.size >= CACHED_DAYS_MAX) isoByDay.clear()
  const iso = toIso(day)
  isoByDay.set(day, iso)
  return iso
}
