// Numbers, dates and names as displayed text.
import type { Count } from './api.ts'

const LOCALE = 'en-US'
const whole = new Intl.NumberFormat(LOCALE)
const compact = new Intl.NumberFormat(LOCALE, { notation: 'compact', maximumFractionDigits: 1 })
const rounded = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 })
const oneDecimal = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 })
export const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']

export const formatCount = (count: Count): string => whole.format(count)
export const formatCountShort = (count: Count): string => (count < 100_000 ? whole : compact).format(count)
export const formatBytesExact = (bytes: Count): string => `${whole.format(bytes)} bytes`

export function formatBytes(bytes: Count): string {
  let value = Number(bytes)
  let unit = 0
  // 1,023.5 would be rounded to 1,024 of this unit, which is 1 of the next.
  while (value >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  const format = unit === 0 || value >= 99.95 ? rounded : oneDecimal
  return `${format.format(value)} ${BYTE_UNITS[unit]}`
}

/** Numbers in names are ordered by value: app-2 before app-10. */
export const { compare: compareNames } = new Intl.Collator(LOCALE, { numeric: true })

const UTC = { timeZone: 'UTC' } as const
const dayAndMonth = new Intl.DateTimeFormat(LOCALE, { ...UTC, day: 'numeric', month: 'short' })
const fullDay = new Intl.DateTimeFormat(LOCALE, { ...UTC, day: 'numeric', month: 'short', year: 'numeric' })
const minute = new Intl.DateTimeFormat(LOCALE, {
  ...UTC,
  dateStyle: 'medium',
  timeStyle: 'short',
  hourCycle: 'h23',
})

/** Usage days are UTC days, whatever the time zone of the browser. */
export const formatDayShort = (day: string): string => dayAndMonth.format(new Date(day))
export const formatDay = (day: string): string => fullDay.format(new Date(day))
export const formatUtcMinute = (at: string): string => `${minute.format(new Date(at))} UTC`
export const formatUtcSecond = (at: string): string => `${at.slice(0, 19).replace('T', ' ')} UTC`

const relative = new Intl.RelativeTimeFormat(LOCALE, { numeric: 'auto' })
const DAY_SECONDS = 86_400
const NO_BREAK_SPACE = '\u00a0'
const STEPS = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', DAY_SECONDS],
  ['hour', 3_600],
  ['minute', 60],
] as const

/** A deadline in days also has its last day: "in 32 days, on Dec 18, 2026". */
export function formatRelativeTime(at: string, nowMs: number): string {
  const seconds = (Date.parse(at) - nowMs) / 1_000
  if (seconds >= DAY_SECONDS) {
    const days = Math.round(seconds / DAY_SECONDS)
    const lastDay = `on ${fullDay.format(Date.parse(at) - 1)}`
    return `in ${days} ${days === 1 ? 'day' : 'days'}, ${lastDay.replaceAll(' ', NO_BREAK_SPACE)}`
  }
  const step = STEPS.find(([, length]) => Math.abs(seconds) >= length)
  if (!step) return 'just now'
  // A deadline in 23 h 59 min is "in 24 hours"; an event 1 h 59 min ago was "1 hour ago".
  const round = seconds > 0 ? Math.round : Math.trunc
  return relative.format(round(seconds / step[1]), step[0])
}

/** `name` is the operator's system account, or the command that acted. */
export const operatorName = (name: string): string => `the server admin (${name})`

export const tooManyCharacters = (count: number): string =>
  `${count} character${count === 1 ? '' : 's'} too many`

/** Length in code points, as the API counts it. */
export const codePointLength = (text: string): number => [...text].length
