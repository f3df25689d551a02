// Units of time. All times are UTC milliseconds since 1970.

export const SECOND_MS = 1_000
export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

export const startOfSecond = (ms: number): number => ms - (ms % SECOND_MS)

/** Start of the UTC day. */
export const startOfDay = (ms: number): number => ms - (ms % DAY_MS)

/** Start of the UTC hour. */
export const startOfHour = (ms: number): number => ms - (ms % HOUR_MS)

/** Start of the UTC month, or of one after it. */
export function startOfMonth(ms: number, monthsLater = 0): number {
  const date = new Date(ms)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + monthsLater)
}
