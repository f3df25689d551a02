// Times, durations and states of requests as displayed text.
import type { ExchangeSummary } from '../../../../src/inspector/api.ts'

const LOCALE = 'en-US'
const clock = new Intl.DateTimeFormat(LOCALE, { timeStyle: 'medium', hourCycle: 'h23' })
const full = new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' })
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 })
const decimal = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 })

/** In the time zone of this machine, which is that of the requests. */
export const formatClock = (at: string): string => clock.format(new Date(at))
export const formatMoment = (at: string): string => full.format(new Date(at))

export function formatDuration(ms: number): string {
  if (ms < 10) return `${decimal.format(ms)} ms`
  if (ms < 999.5) return `${whole.format(ms)} ms`
  if (ms < 59_950) return `${decimal.format(ms / 1_000)} s`
  return `${whole.format(Math.floor(ms / 60_000))} min ${whole.format((ms / 1_000) % 60)} s`
}

export const kindNames: Record<ExchangeSummary['kind'], string> = {
  http: 'HTTP',
  websocket: 'WebSocket',
  sse: 'Server-sent events',
}

const stateNames: Record<ExchangeSummary['state'], string> = {
  pending: 'Pending',
  complete: 'Complete',
  aborted: 'Aborted',
  unrecorded: 'Partly recorded',
}

/** How far the request came: its duration if the response is complete. */
export function describeProgress(request: ExchangeSummary): string {
  const { state, kind, lastByteMs } = request
  if (state === 'pending') return kind === 'websocket' ? 'Open' : stateNames.pending
  if (state !== 'complete') return stateNames[state]
  return lastByteMs === undefined ? stateNames.complete : formatDuration(lastByteMs)
}

/** Text of the badge, its color, and what it is called. */
export function describeStatus({ status, state }: ExchangeSummary) {
  if (status === undefined)
    return state === 'pending'
      ? { text: '···', color: 'gray', label: 'No response yet' }
      : { text: '—', color: 'red', label: 'No response' }
  const color = status >= 500 ? 'red' : status >= 400 ? 'amber' : status >= 300 ? 'gray' : 'green'
  return { text: String(status), color, label: `Status ${status}` }
}
