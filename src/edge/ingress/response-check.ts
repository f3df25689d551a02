// Recognizes responses of local servers by which they reject the tunnel: development servers that do not know
// its host, and servers that expect TLS. Only responses with few statuses are looked at, and only the first
// chunk of their body.

import type { ResponseHead } from '../../tunnel-protocol/http/response-head.ts'
import type { Framework, NoResponseCause, RequestProblem } from '../../tunnel-protocol/problems.ts'

/** Rails has its style sheet before the message. */
const PREFIX_BYTES_MAX = 8 * 1024
const WEBPACK_REJECTION = 'Invalid Host header'

const EXPECTS_TLS =
  /^Client sent an HTTP request to an HTTPS server\.|plain HTTP request was sent to HTTPS port|speaking plain HTTP to an SSL-enabled server port/

/** Whether `findProblem` can find something in the body. Earlier versions of webpack-dev-server send 200. */
export const mayHaveProblem = ({ status, framing }: ResponseHead): boolean =>
  status === 403 || status === 400 || (status === 200 && framing === WEBPACK_REJECTION.length)

/** `path` is that of the request, `body` the first chunk. */
export function findProblem(status: number, path: string, body: Buffer): RequestProblem | undefined {
  const text = body.toString('latin1', 0, Math.min(body.length, PREFIX_BYTES_MAX))
  if (status === 400 && EXPECTS_TLS.test(text)) return { problem: 'tls' }
  const framework = findFramework(status, path, text)
  return framework && { problem: 'host_rejected', framework }
}

function findFramework(status: number, path: string, text: string): Framework | undefined {
  if (text === WEBPACK_REJECTION) return 'webpack-dev-server'
  if (status === 400) return /^DisallowedHost at |<title>DisallowedHost\b/.test(text) ? 'django' : undefined
  if (status !== 403) return undefined
  if (text.startsWith('Blocked request. This host (')) return 'vite'
  if (text === 'Invalid host') return 'storybook'
  if (text === 'Unauthorized' && isNextPath(path)) return 'next'
  return /^Blocked hosts?: |<h1>Blocked hosts?: /.test(text) ? 'rails' : undefined
}

/** Next rejects unknown origins of requests for its own resources, not hosts of pages. */
const isNextPath = (path: string) => path.includes('/_next/')

/** Next rejects an upgrade with a text alone, without a status line. */
export const findUpgradeProblem = (path: string, cause: NoResponseCause): RequestProblem =>
  cause === 'not_http' && isNextPath(path)
    ? { problem: 'host_rejected', framework: 'next' }
    : { problem: cause }
