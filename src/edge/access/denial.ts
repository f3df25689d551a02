// Requests that the access rules or the quota of a tunnel reject.
import type { VisitorError } from '../error-responses/causes.ts'

/** The host is that of an open tunnel, so it needs no quoting. */
export const unauthorized = (host: string, { isWrong }: { isWrong: boolean }): VisitorError => ({
  cause: isWrong ? 'wrong_password' : 'unauthorized',
  headers: { 'www-authenticate': `Basic realm="${host}", charset="UTF-8"` },
})

/** `address` is that of the client, in canonical form. */
export const forbidden = (address: string | undefined): VisitorError =>
  address === undefined
    ? { cause: 'unknown_address' }
    : { cause: 'forbidden', detail: `Your IP address is ${address}.` }

export const tooManyAttempts = (retryAfterMs: number): VisitorError => ({
  cause: 'too_many_sign_ins',
  ...retryAfter(retryAfterMs),
})

/** The operator may raise the quota earlier, so clients should not wait for weeks. */
const QUOTA_RETRY_MAX_S = 3_600

export const quotaExceeded = (until: number, now: number): VisitorError => ({
  cause: 'quota_exceeded',
  detail: `It renews on ${new Date(until).toISOString().slice(0, 10)} at 00:00 UTC.`,
  headers: { 'retry-after': String(Math.min(Math.ceil((until - now) / 1_000), QUOTA_RETRY_MAX_S)) },
})

/** The hash queue is full because of other tunnels. */
export const busy = (retryAfterMs: number): VisitorError => ({
  cause: 'sign_in_busy',
  ...retryAfter(retryAfterMs),
})

function retryAfter(ms: number): Pick<VisitorError, 'detail' | 'headers'> {
  const seconds = Math.ceil(ms / 1000)
  return {
    detail: `You can try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    headers: { 'retry-after': String(seconds) },
  }
}
