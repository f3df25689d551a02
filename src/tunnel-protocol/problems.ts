// Problems with a local server. The edge finds most of them in the response, or in its absence. What only the
// client knows, it reports to the edge in a response of its own. The client shows problems to the owner of
// the tunnel, with advice; the edge shows them to the visitor, without details.

/** Found by the client when it connects. */
const CONNECT_PROBLEMS = ['unreachable', 'certificate', 'no_tls'] as const
export type ConnectProblem = (typeof CONNECT_PROBLEMS)[number]

/** Why an edge does not pass a request of another edge to the tunnel client. */
const FORWARD_PROBLEMS = [
  /** The tunnel client is not there, or other access rules apply by now. */
  'tunnel_moved',
  'tunnel_busy',
] as const
export type ForwardProblem = (typeof FORWARD_PROBLEMS)[number]

/** Why the visitor gets no response of the local server. */
const NO_RESPONSE_CAUSES = [
  ...CONNECT_PROBLEMS,
  /** The server expects TLS. */
  'tls',
  /** The server does not speak HTTP/1.1. */
  'http2',
  'not_http',
  'invalid_response',
  'head_too_large',
  'closed',
  /** None came because the connection to the tunnel client was lost. The local server may be fine. */
  'no_response',
  'response_timeout',
] as const
export type NoResponseCause = (typeof NO_RESPONSE_CAUSES)[number]

/** Why a request fails, at the local server or before it. */
export type FailureCause = NoResponseCause | ForwardProblem

export const isForwardProblem = (cause: FailureCause): cause is ForwardProblem =>
  FORWARD_PROBLEMS.some((problem) => problem === cause)

/** The type and major version of a TLS alert, which servers send that expect TLS. */
const TLS_ALERT = String.fromCharCode(0x15, 0x03)

/**
 * Type, flags and stream of a SETTINGS or GOAWAY frame, after its length. Servers of HTTP/2 begin with one.
 */
const HTTP2_FRAMES = [0x04, 0x07].map((type) => String.fromCharCode(type, 0, 0, 0, 0, 0))

/** What a server speaks whose first bytes, in latin1, cannot become a status line of HTTP/1. */
export function recognizeOther(start: string): 'tls' | 'http2' | 'not_http' | undefined {
  if (start.startsWith(TLS_ALERT)) return 'tls'
  if ('HTTP/1.'.startsWith(start.slice(0, 'HTTP/1.'.length))) return undefined
  return HTTP2_FRAMES.includes(start.slice(3, 9)) ? 'http2' : 'not_http'
}

/** The header of a 502 by which a client, or another edge, says why it could not connect. */
const PROBLEM_HEADER = 'adit-problem'

export const problemResponse = (problem: ConnectProblem | ForwardProblem) =>
  `HTTP/1.1 502 Bad Gateway\r\n${PROBLEM_HEADER}: ${problem}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`

/** Headers are alternating names and values. */
export function readProblem(headers: readonly string[]): ConnectProblem | ForwardProblem | undefined {
  const index = headers.findIndex((name, at) => at % 2 === 0 && name.toLowerCase() === PROBLEM_HEADER)
  return [...CONNECT_PROBLEMS, ...FORWARD_PROBLEMS].find(
    (problem) => index >= 0 && problem === headers[index + 1],
  )
}

/** Development servers whose rejections of an unknown host the edge recognizes. */
const FRAMEWORKS = ['vite', 'next', 'django', 'rails', 'webpack-dev-server', 'storybook'] as const
export type Framework = (typeof FRAMEWORKS)[number]

/** Why a request failed after it was passed to a tunnel client. */
export type RequestProblem =
  | { readonly problem?: NoResponseCause | undefined }
  | { readonly problem: 'host_rejected'; readonly framework: Framework }

/** Reads the problem from the fields of an event. Unknown values are left out. */
export function toRequestProblem(fields: Readonly<Record<string, unknown>>): RequestProblem {
  const framework = FRAMEWORKS.find((name) => name === fields.framework)
  if (fields.problem === 'host_rejected' && framework) return { problem: 'host_rejected', framework }
  const problem = NO_RESPONSE_CAUSES.find((cause) => cause === fields.problem)
  return problem ? { problem } : {}
}
