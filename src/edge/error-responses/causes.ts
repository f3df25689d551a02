// Why a visitor gets an error instead of a response from the local server. The code is the `error` field of
// the JSON response. The texts are the same for every tunnel, so they reveal nothing about the owner's
// machine. Backticks mark a command or an option.

export interface Cause {
  readonly status: number
  readonly title: string
  /** What the visitor can do. */
  readonly visitor: string
  /** What the owner of the tunnel can do, or the operator of the edge. */
  readonly owner: string
}

const NOT_FORWARDED = 'The request did not reach your local server. No change is needed there.'
const CHANGE_ACCESS_RULES =
  'Change the access rules with the options of `adit tunnel`, or in the dashboard if they were set there.'
const REDUCE_LOAD =
  'If this happens often, find out which requests are slow on your local server, or split the traffic ' +
  'between several tunnels.'

const TRY_LATER =
  'The tunnel is open, but the server behind it does not respond as expected. Try again later.'
const CHECK_OUTPUT = 'Check the output of `adit tunnel` and of your local server.'

export const causes = {
  malformed_request: {
    status: 400,
    title: 'Malformed request',
    visitor: 'Check the program that sent the request, and send it again.',
    owner: NOT_FORWARDED,
  },
  unauthorized: {
    status: 401,
    title: 'Sign in to continue',
    visitor: 'This tunnel requires a user name and a password. Reload the page to enter them.',
    owner: CHANGE_ACCESS_RULES,
  },
  wrong_password: {
    status: 401,
    title: 'Wrong user name or password',
    visitor: 'The user name or the password is wrong. Reload the page to try again.',
    owner: CHANGE_ACCESS_RULES,
  },
  forbidden: {
    status: 403,
    title: 'Access denied',
    visitor: 'This tunnel accepts only certain IP addresses. Ask its owner to allow yours.',
    owner: CHANGE_ACCESS_RULES,
  },
  unknown_address: {
    status: 403,
    title: 'Access denied',
    visitor: 'This tunnel accepts only certain IP addresses, and yours is not known. Tell its owner.',
    owner:
      'The request came through a proxy, or from the same machine as the edge, without `X-Forwarded-For`. ' +
      'The operator of the edge has to configure the proxy to send it.',
  },
  tunnel_not_found: {
    status: 404,
    title: 'No tunnel is open at this address',
    visitor: 'Check the address. If it is right, the tunnel is closed: ask its owner to open it again.',
    owner: 'Start `adit tunnel`, and compare the URL it prints with this address.',
  },
  tcp_tunnel: {
    status: 404,
    title: 'This is a TCP tunnel',
    visitor:
      'It does not accept HTTP requests at this address. Connect to its port with a client for its protocol.',
    owner: 'For a website, open an HTTP tunnel: `adit tunnel <port>`, under another name.',
  },
  connect_not_supported: {
    status: 405,
    title: 'CONNECT is not supported',
    visitor: 'This server is not a forward proxy. Remove it from the proxy settings of your program.',
    owner: NOT_FORWARDED,
  },
  request_timeout: {
    status: 408,
    title: 'The request did not arrive in time',
    visitor: 'Check your connection, and try again.',
    owner: NOT_FORWARDED,
  },
  too_many_requests: {
    status: 429,
    title: 'Too many concurrent requests from your address',
    visitor: 'Wait until some of your requests are done, then try again.',
    owner: REDUCE_LOAD,
  },
  too_many_sign_ins: {
    status: 429,
    title: 'Too many attempts to sign in',
    visitor: 'Make sure that you have the right user name and password, and try again later.',
    owner: 'The limit applies to each IP address: other visitors can still sign in. No change is needed.',
  },
  quota_exceeded: {
    status: 429,
    title: 'This site has used up its traffic for this month',
    visitor: 'Come back later, or tell the owner of the site.',
    owner: 'Your workspace has reached its quota. The operator of the server can raise it.',
  },
  headers_too_large: {
    status: 431,
    title: 'The request headers are too large',
    visitor: 'Delete the cookies of this site, and try again.',
    owner: 'Have your local server set fewer or smaller cookies.',
  },
  unreachable: {
    status: 502,
    title: 'The local server cannot be reached',
    visitor: TRY_LATER,
    owner: 'Start your local server, or check the target of `adit tunnel`.',
  },
  certificate: {
    status: 502,
    title: 'The certificate of the local server is not trusted',
    visitor: TRY_LATER,
    owner: 'Start `adit tunnel` with `--ca <file>` or `--insecure`.',
  },
  no_tls: {
    status: 502,
    title: 'The local server does not use TLS',
    visitor: TRY_LATER,
    owner: 'Use a target with `http://` instead of `https://`.',
  },
  tls: {
    status: 502,
    title: 'The local server uses TLS',
    visitor: TRY_LATER,
    owner: 'Use a target with `https://` instead of `http://`.',
  },
  http2: {
    status: 502,
    title: 'The local server speaks only HTTP/2',
    visitor: TRY_LATER,
    owner: 'Have your local server accept HTTP/1.1, too. For gRPC, use `adit tunnel tcp`.',
  },
  not_http: {
    status: 502,
    title: 'The local server does not use HTTP',
    visitor: TRY_LATER,
    owner: 'Check the target of `adit tunnel`. For other protocols, use `adit tunnel tcp`.',
  },
  invalid_response: {
    status: 502,
    title: 'The response of the local server is invalid',
    visitor: TRY_LATER,
    owner: CHECK_OUTPUT,
  },
  head_too_large: {
    status: 502,
    title: 'The response headers of the local server are too large',
    visitor: TRY_LATER,
    owner: 'Have your local server send at most 64 KiB of headers, and 1,000 of them.',
  },
  closed: {
    status: 502,
    title: 'The local server closed the connection',
    visitor: TRY_LATER,
    owner: CHECK_OUTPUT,
  },
  no_response: {
    status: 502,
    title: 'The local server did not respond',
    visitor: 'The tunnel is open, but the server behind it did not send a valid response. Try again later.',
    owner: 'Make sure that your local server is running, and look at the output of `adit tunnel`.',
  },
  tunnel_busy: {
    status: 503,
    title: 'The tunnel is at capacity',
    visitor: 'Too many requests are in progress. Try again shortly.',
    owner: REDUCE_LOAD,
  },
  workspace_busy: {
    status: 503,
    title: 'The tunnels of this workspace are at capacity',
    visitor: 'Too many requests are in progress. Try again shortly.',
    owner: REDUCE_LOAD,
  },
  tunnel_moved: {
    status: 503,
    title: 'The tunnel has just changed',
    visitor: 'The request was not processed. Try again.',
    owner: 'Your client has moved to another edge, or the access rules were changed. No change is needed.',
  },
  tunnel_unreachable: {
    status: 503,
    title: 'The tunnel cannot be reached from here',
    visitor: 'Try again shortly.',
    owner:
      'The client is connected to another edge, and this one cannot reach that edge. If this continues, tell ' +
      'the operator of the edges.',
  },
  edge_cut_off: {
    status: 503,
    title: 'The tunnel is suspended',
    visitor: 'Try again shortly.',
    owner:
      'The edge cannot reach its control plane, and so cannot know whether your key is still valid. It ' +
      'continues by itself; if this lasts, tell the operator of the edge.',
  },
  request_too_slow: {
    status: 503,
    title: 'The tunnel is at capacity',
    visitor: 'This was the slowest of many requests from your network. Try again shortly.',
    owner: REDUCE_LOAD,
  },
  out_of_memory: {
    status: 503,
    title: 'The tunnels of this workspace are out of memory for slow requests',
    visitor: 'Try again shortly, over a faster connection if possible.',
    owner: REDUCE_LOAD,
  },
  sign_in_busy: {
    status: 503,
    title: 'The edge is busy with other sign-ins',
    visitor: 'Wait, then reload the page.',
    owner: 'If this happens often, tell the operator of the edge.',
  },
  response_timeout: {
    status: 504,
    title: 'The local server did not respond in time',
    visitor: 'The tunnel is open, but the server behind it is slow. Try again later.',
    owner: 'Check why your local server takes more than two minutes to respond to this request.',
  },
} as const satisfies Record<string, Cause>

export type CauseCode = keyof typeof causes

/** An error response to a visitor. */
export interface VisitorError {
  readonly cause: CauseCode
  /** A sentence about this request. It may contain input, which is escaped when the page is rendered. */
  readonly detail?: string
  readonly headers?: Readonly<Record<string, string>>
}
