// Verifies the signatures of webhooks as their providers document it: an HMAC with SHA-256 of the raw body,
// most with the time of sending.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { SignatureResult, SignatureScheme } from '../api.ts'
import { findHeader, type RecordedExchange } from '../store/exchange.ts'
import { SignatureProblem, type Signed, schemes } from './schemes.ts'

/** What the libraries of the providers allow. */
const TOLERANCE_MS = 5 * 60_000

const MESSAGES = {
  missing_header: 'The request has no such signature',
  malformed_header: 'The signature header is malformed',
  invalid_secret: 'This is not a secret of that kind',
} as const

export function verifySignature(
  exchange: RecordedExchange,
  scheme: SignatureScheme,
  secret: string,
): SignatureResult {
  const { headers, body } = exchange.request
  if (body.isCut)
    return fail('body_cut', 'The body was not recorded as a whole, so its signature cannot be verified.')
  try {
    const signed = schemes[scheme]((name) => findHeader(headers, name), secret)
    return compare(signed, body.content, exchange.startedAt.getTime())
  } catch (error) {
    if (!(error instanceof SignatureProblem)) throw error
    return fail(error.reason, `${MESSAGES[error.reason]}: ${error.message}.`)
  }
}

function compare(
  { key, prefix, signatures, signedAtMs }: Signed,
  body: Buffer,
  nowMs: number,
): SignatureResult {
  const expected = createHmac('sha256', key).update(prefix).update(body).digest()
  const isEqual = (signature: Buffer) =>
    signature.length === expected.length && timingSafeEqual(signature, expected)
  const time = signedAtMs === undefined ? {} : { signedAt: new Date(signedAtMs).toISOString() }
  if (!signatures.some(isEqual))
    return {
      ...fail(
        'mismatch',
        'The signature does not match: the secret is another one, or the body was changed.',
      ),
      ...time,
    }
  const ageMs = signedAtMs === undefined ? 0 : nowMs - signedAtMs
  const seconds = Math.round(Math.abs(ageMs) / 1000)
  if (ageMs > TOLERANCE_MS)
    return {
      ...fail(
        'too_old',
        `The secret is right, but the request arrived ${seconds} seconds after it was signed. Most libraries accept 300.`,
      ),
      ...time,
    }
  if (ageMs < -TOLERANCE_MS)
    return {
      ...fail(
        'in_future',
        `The secret is right, but the request was signed ${seconds} seconds after it arrived. Check the clock of this machine.`,
      ),
      ...time,
    }
  return { valid: true, reason: 'ok', message: 'The signature is valid.', ...time }
}

const fail = (reason: SignatureResult['reason'], message: string): SignatureResult => ({
  valid: false,
  reason,
  message,
})
