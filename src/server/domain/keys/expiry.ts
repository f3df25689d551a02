// The expiry of API keys: the instant from which a key is not active. It is compared with the clock of the
// database, which nodes and edges follow; theirs may differ.
import { KEY_DAYS_MAX } from '../../../contract/limits.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../lib/time.ts'
import { Fault } from '../fault.ts'
import { parseTime } from '../timestamps.ts'

/** In whole seconds, so that lists of keys change by the passing of time at most once a second. */
export function parseExpiry(expiresAt: string, now: number): number {
  const at = parseTime(expiresAt)
  if (at === undefined) throw invalidExpiry('must be an existing date and time')
  if (at <= now) throw invalidExpiry('must be in the future')
  if (at > now + KEY_DAYS_MAX * DAY_MS)
    throw invalidExpiry(`must not be more than ${KEY_DAYS_MAX} days from now`)
  return Math.ceil(at / SECOND_MS) * SECOND_MS
}

const LIFETIME = /^([1-9]\d{0,4})([hd])$/
const UNIT_MS: Record<string, number> = { h: HOUR_MS, d: DAY_MS }
const DAY = /^\d{4}-\d{2}-\d{2}$/
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/

/** Accepts `90d`, `12h`, a UTC day (its end) or a UTC timestamp; undefined for other text. */
export function readExpiry(text: string, now: number): number | undefined {
  const [, count, unit = ''] = LIFETIME.exec(text) ?? []
  if (count) return now + Number(count) * (UNIT_MS[unit] as number)
  if (TIMESTAMP.test(text)) return parseTime(text)
  const startOfDay = DAY.test(text) ? parseTime(text) : undefined
  return startOfDay === undefined ? undefined : startOfDay + DAY_MS
}

const invalidExpiry = (message: string) =>
  new Fault('invalid_request', {
    message: `expiresAt ${message}.`,
    details: [{ path: '/expiresAt', message }],
  })
