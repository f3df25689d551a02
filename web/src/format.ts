// Numbers and times as people read them.
import type { Count } from './api.ts'

const whole = new Intl.NumberFormat('en-GB')
// British style writes millions as m, which reads like thousandths here.
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const rounded = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 0 })
const tenths = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 1 })
export const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']

export const formatCount = (count: Count): string => whole.format(count)
export const formatCountShort = (count: Count): string => (count < 100_000 ? whole : compact).format(count)
export const formatBytesExact = (bytes: Count): string => `${whole.format(bytes)} bytes`

export function formatBytes(bytes: Count): string {
  let value = Number(bytes)
  let unit = 0
  // What would be shown as 1,024 of a unit is 1 of the next.
  while (value >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024
    unit += 1
  }
  const format = unit === 0 || value >= 99.95 ? rounded : tenths
  return `${format.format(value)} ${BYTE_UNITS[unit]}`
}

const UTC = { timeZone: 'UTC' } as const
const dayAndMonth = new Intl.DateTimeFormat('en-GB', { ...UTC, day: 'numeric', month: 'short' })
const fullDay = new Intl.DateTimeFormat('en-GB', { ...UTC, day: 'numeric', month: 'short', year: 'numeric' })
const minute = new Intl.DateTimeFormat('en-GB', { ...UTC, dateStyle: 'medium', timeStyle: 'short' })

/** The days of the API are days of UTC, wherever the reader is. */
export const formatDayShort = (day: string): string => dayAndMonth.format(new Date(day))
export const formatDay = (day: string): string => fullDay.format(new Date(day))
export const formatUtcMinute = (at: string): string => `${minute.format(new Date(at))} UTC`
export const formatUtcSecond = (at: string): string => `${at.slice(0, 19).replace('T', ' ')} UTC`

const relative = new Intl.RelativeTimeFormat('en-GB', { numeric: 'auto' })
const STEPS = [
  ['year', 31_557_600],
  ['month', 2_629_800],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

export function formatRelativeTime(at: string, nowMs: number): string {
  const seconds = (Date.parse(at) - nowMs) / 1_000
  const step = STEPS.find(([, length]) => Math.abs(seconds) >= length)
  return step ? relative.format(Math.trunc(seconds / step[1]), step[0]) : 'just now'
}

/** Operators are known by the account of their system, or by what made the server act by itself. */
export const operatorName = (name: string): string => `the operator (${name})`

/** Who invited or made something: "operator root" where it was not a person. */
export const creatorName = (name: string): string =>
  name.replace(/^operator (.+)$/, (_, operator: string) => operatorName(operator))

/** Characters as the API counts them: code points, not halves of them. */
export const codePointLength = (text: string): number => [...text].length
