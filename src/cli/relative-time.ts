// "3 minutes ago" on a terminal; scripts get the ISO timestamp. A deadline has its last UTC day, too:
// "in 32 days (2026-12-18)".
const DAY_SECONDS = 86_400
const UNITS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 365 * DAY_SECONDS],
  ['month', 30 * DAY_SECONDS],
  ['day', DAY_SECONDS],
  ['hour', 3_600],
  ['minute', 60],
]
const NOW_SECONDS = 10

export function relativeTime(iso: string, now: number): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1_000)
  if (Number.isNaN(seconds)) return iso
  const distance = Math.abs(seconds)
  if (distance < NOW_SECONDS) return 'just now'
  if (seconds >= DAY_SECONDS) {
    const days = Math.round(seconds / DAY_SECONDS)
    const lastDay = new Date(Date.parse(iso) - 1).toISOString().slice(0, 10)
    return `in ${days} ${days === 1 ? 'day' : 'days'} (${lastDay})`
  }
  const [unit, size] = UNITS.find(([, size]) => distance >= size) ?? ['second', 1]
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'always' })
  return format.format(Math.trunc(seconds / size), unit)
}
