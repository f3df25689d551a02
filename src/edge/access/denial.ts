// Responses to requests that the access rules of a tunnel reject: a page for browsers, JSON for others.
import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export interface Denial {
  readonly status: 401 | 403 | 429 | 503
  readonly error: 'unauthorized' | 'forbidden' | 'rate_limited' | 'quota_exceeded' | 'unavailable'
  readonly title: string
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}

/** The host is that of an open tunnel, so it needs no quoting. */
export const unauthorized = (host: string, { isWrong }: { isWrong: boolean }): Denial => ({
  status: 401,
  error: 'unauthorized',
  title: isWrong ? 'Wrong user name or password' : 'Sign in to continue',
  message: isWrong
    ? 'The user name or the password is wrong. Try again.'
    : 'This tunnel needs a user name and a password.',
  headers: { 'www-authenticate': `Basic realm="${host}", charset="UTF-8"` },
})

/** `address` is that of the client, in canonical form. */
export const forbidden = (address: string | undefined): Denial => ({
  status: 403,
  error: 'forbidden',
  title: 'Access denied',
  message:
    address === undefined
      ? 'This tunnel is limited to certain addresses, and yours is not known: the request came through a proxy, ' +
        'or from the machine of the edge, without X-Forwarded-For.'
      : `This tunnel is limited to certain addresses, and yours (${address}) is not one of them.`,
  headers: {},
})

export const tooManyAttempts = (retryAfterMs: number): Denial => ({
  status: 429,
  error: 'rate_limited',
  title: 'Too many attempts to sign in',
  ...retryAfter(retryAfterMs),
})

/** The operator may raise the quota earlier, so clients should not wait for weeks. */
const QUOTA_RETRY_MAX_S = 3_600

export const quotaExceeded = (until: number, now: number): Denial => ({
  status: 429,
  error: 'quota_exceeded',
  title: 'This site has used up its traffic for this month',
  message:
    'The workspace that this tunnel belongs to has reached its quota. ' +
    `It renews on ${new Date(until).toISOString().slice(0, 10)} at 00:00 UTC.`,
  headers: { 'retry-after': String(Math.min(Math.ceil((until - now) / 1_000), QUOTA_RETRY_MAX_S)) },
})

/** The hash queue is full because of other tunnels. */
export const busy = (retryAfterMs: number): Denial => ({
  status: 503,
  error: 'unavailable',
  title: 'The edge is busy with other sign-ins',
  ...retryAfter(retryAfterMs),
})

function retryAfter(ms: number): Pick<Denial, 'message' | 'headers'> {
  const seconds = Math.ceil(ms / 1000)
  return {
    message: `Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    headers: { 'retry-after': String(seconds) },
  }
}

/** The colors of the dashboard. */
const STYLE =
  ':root{color-scheme:light dark}' +
  'body{font:16px/1.5 system-ui,sans-serif;max-width:32rem;margin:20vh auto 0;padding:0 1.25rem;' +
  'color:#1b2430;background:#f6f7f9;overflow-wrap:anywhere}' +
  'h1{font-size:1.375rem;line-height:1.3;margin:0 0 .5rem}p{margin:0 0 .5rem;color:#566272}' +
  '@media(prefers-color-scheme:dark){body{color:#dbe1e8;background:#0e1319}p{color:#b0bac6}}'
const CONTENT_SECURITY_POLICY =
  `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

interface DenialResponse {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export function denialResponse(
  denial: Denial,
  { headers: { accept = '' } }: IncomingMessage,
): DenialResponse {
  const { status, error, title, message } = denial
  const headers = { ...denial.headers, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
  if (!/\btext\/html\b/i.test(accept))
    return {
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ error, message }),
    }
  return {
    headers: {
      ...headers,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': CONTENT_SECURITY_POLICY,
    },
    body:
      '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
      '<meta name="viewport" content="width=device-width,initial-scale=1">' +
      `<title>${title}</title><style>${STYLE}</style></head>` +
      `<body><main><p>Error ${status}</p><h1>${title}</h1><p>${message}</p></main></body></html>\n`,
  }
}
