// Sends one webhook request. Standard Webhooks counts redirects as failures.
import { sendRequest } from '../outbound/request.ts'
import { TargetError, type Targets } from '../outbound/targets.ts'

/** Includes DNS, and everything up to the end of the response. */
export const SEND_TIMEOUT_MS = 10_000
const LOGGED_CHARS_MAX = 1_000

interface WebhookRequest {
  url: string
  headers: Record<string, string>
  body: string
}

export interface SendResult {
  /** Null without a response. */
  status: number | null
  /** First 1,000 characters of the response body, for the log of deliveries. */
  response: string | null
  /** Why there is no response. */
  error: string | null
}

interface SendOptions {
  targets: Targets
  /** Aborted at shutdown. */
  signal: AbortSignal
  timeoutMs?: number
}

/** Never rejects. */
export async function sendWebhook(
  webhook: WebhookRequest,
  { targets, signal, timeoutMs = SEND_TIMEOUT_MS }: SendOptions,
): Promise<SendResult> {
  const timeout = AbortSignal.timeout(timeoutMs)
  const aborted = AbortSignal.any([signal, timeout])
  try {
    const { url, headers, body } = webhook
    const request = { method: 'POST', headers, body } as const
    const received = await sendRequest(new URL(url), request, { targets, signal: aborted })
    return { status: received.status, response: printable(received.body), error: null }
  } catch (error) {
    const isTimeout = timeout.aborted && !signal.aborted
    return {
      status: null,
      response: null,
      error: isTimeout ? `No response within ${timeoutMs / 1_000} seconds.` : describeFailure(error),
    }
  }
}

/**
 * PostgreSQL rejects U+0000 in text, and control, bidirectional and invisible characters make a page show
 * something else than what was sent. Emoji need U+200D and U+FE0F.
 */
const UNPRINTABLE =
  /(?!\n|\t|\u200d|\ufe0f)[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu

const printable = (body: Buffer): string =>
  body.toString('utf8').replace(UNPRINTABLE, '\u{fffd}').slice(0, LOGGED_CHARS_MAX).toWellFormed()

const messages: Record<string, string> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was reset.',
  EPIPE: 'The connection was reset.',
  ETIMEDOUT: 'The connection timed out.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The host cannot be reached.',
  HPE_HEADER_OVERFLOW: 'The headers of the response are too large.',
}

function describeFailure(error: unknown): string {
  if (error instanceof TargetError) return error.message
  const { code = '', message = '' } = error as NodeJS.ErrnoException
  if (messages[code]) return messages[code]
  if (code.startsWith('HPE_')) return 'The response is not valid HTTP.'
  if (/CERT|TLS|SSL|ALTNAME|EPROTO|VERIFY|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH/.test(code))
    return `TLS failed: ${code}.`
  return code ? `The request failed: ${code}.` : `The request failed: ${message.slice(0, 200)}.`
}
