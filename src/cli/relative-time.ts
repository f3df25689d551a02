// "3 minutes ago" on a terminal; scripts get the ISO timestamp.
const UNITS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]
const NOW_SECONDS = 10

export function relativeTime(iso: string, now: number): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1_000)
  if (Number.isNaN(seconds)) return iso
  const distance = Math.abs(seconds)
  if (distance < NOW_SECONDS) return 'just now'
  const [unit, size] = UNITS.find(([, size]) => distance >= size) ?? ['second', 1]
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'always' })
  return format.format(Math.trunc(seconds / size), unit)
}
