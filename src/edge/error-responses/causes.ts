// Why a visitor gets an error instead of a response of the local server. The code is the `error` of the JSON
// form. Texts are the same for every tunnel: they say nothing about the machine of its owner. Text in
// backticks is a command or an option.

export interface Cause {
  readonly status: number
  readonly title: string
  /** What the visitor can do. */
  readonly visitor: string
  /** What the owner of the tunnel can do, or the operator of the edge. */
  readonly owner: string
}

const OWNER_OF_REQUEST = 'The request did not reach your local server. No change is needed there.'
const OWNER_OF_RULES =
  'Change the rules with the options of `adit tunnel`, or in the dashboard if they were set there.'
const OWNER_OF_LOAD =
  'If it happens often, find out which requests take long at your local server, or split the traffic ' +
  'between several tunnels.'

const VISITOR_OF_SERVER =
  'The tunnel is open, but the server behind it does not respond as expected. Try again later.'
const OWNER_OF_SERVER = 'Look at the output of `adit tunnel`, and at that of your local server.'

export const causes = {
  malformed_request: {
    status: 400,
    title: 'Malformed request',
    visitor: 'Check the program that sent the request, and send it again.',
    owner: OWNER_OF_REQUEST,
  },
  unauthorized: {
    status: 401,
    title: 'Sign in to continue',
    visitor: 'This tunnel needs a user name and a password. Reload the page to enter them.',
    owner: OWNER_OF_RULES,
  },
  wrong_password: {
    status: 401,
    title: 'Wrong user name or password',
    visitor: 'The user name or the password is wrong. Reload the page to try again.',
    owner: OWNER_OF_RULES,
  },
  forbidden: {
    status: 403,
    title: 'Access denied',
    visitor: 'This tunnel accepts only certain IP addresses. Ask its owner to allow yours.',
    owner: OWNER_OF_RULES,
  },
  unknown_address: {
    status: 403,
    title: 'Access denied',
    visitor: 'This tunnel accepts only certain IP addresses, and yours is not known. Tell its owner.',
    owner:
      'The request came through a proxy, or from the machine of the edge, without `X-Forwarded-For`. The ' +
      'operator of the edge has to configure the proxy to send it.',
  },
  tunnel_not_found: {
    status: 404,
    title: 'No tunnel is open at this address',
    visitor: 'Check the address, or ask the person who sent it to you whether the tunnel is running.',
    owner: 'Start `adit tunnel`, and compare the address that it shows with this one.',
  },
  tcp_tunnel: {
    status: 404,
    title: 'This is a TCP tunnel',
    visitor: 'It takes no HTTP requests at this address. Connect to its port with the program it is for.',
    owner: 'For a website, open an HTTP tunnel: `adit tunnel <port>`, under another name.',
  },
  connect_not_supported: {
    status: 405,
    title: 'CONNECT is not supported',
    visitor: 'This server is not a forward proxy. Remove it from the proxy settings of your program.',
    owner: OWNER_OF_REQUEST,
  },
  request_timeout: {
    status: 408,
    title: 'The request did not arrive in time',
    visitor: 'Check your connection, and try again.',
    owner: OWNER_OF_REQUEST,
  },
  too_many_requests: {
    status: 429,
    title: 'Too many concurrent requests from your address',
    visitor: 'Wait until some of your requests are done, then try again.',
    owner: OWNER_OF_LOAD,
  },
  too_many_sign_ins: {
    status: 429,
    title: 'Too many attempts to sign in',
    visitor: 'Wait, and make sure that you have the right user name and password.',
    owner: 'The limit is for each address: other visitors can sign in. No change is needed.',
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
    visitor: VISITOR_OF_SERVER,
    owner: 'Start your local server, or check the target of `adit tunnel`.',
  },
  certificate: {
    status: 502,
    title: 'The certificate of the local server is not trusted',
    visitor: VISITOR_OF_SERVER,
    owner: 'Start `adit tunnel` with `--ca <file>` or `--insecure`.',
  },
  no_tls: {
    status: 502,
    title: 'The local server does not use TLS',
    visitor: VISITOR_OF_SERVER,
    owner: 'Use a target with `http://` instead of `https://`.',
  },
  tls: {
    status: 502,
    title: 'The local server uses TLS',
    visitor: VISITOR_OF_SERVER,
    owner: 'Use a target with `https://` instead of `http://`.',
  },
  not_http: {
    status: 502,
    title: 'The local server does not use HTTP',
    visitor: VISITOR_OF_SERVER,
    owner: 'Check the target of `adit tunnel`. For other protocols, use `adit tunnel tcp`.',
  },
  invalid_response: {
    status: 502,
    title: 'The response of the local server is invalid',
    visitor: VISITOR_OF_SERVER,
    owner: OWNER_OF_SERVER,
  },
  head_too_large: {
    status: 502,
    title: 'The response of the local server has too many or too large headers',
    visitor: VISITOR_OF_SERVER,
    owner: OWNER_OF_SERVER,
  },
  closed: {
    status: 502,
    title: 'The local server closed the connection',
    visitor: VISITOR_OF_SERVER,
    owner: OWNER_OF_SERVER,
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
    owner: OWNER_OF_LOAD,
  },
  workspace_busy: {
    status: 503,
    title: 'The tunnels of this workspace are at capacity',
    visitor: 'Too many requests are in progress. Try again shortly.',
    owner: OWNER_OF_LOAD,
  },
  request_too_slow: {
    status: 503,
    title: 'The tunnel is at capacity',
    visitor: 'This was the slowest of many requests from your network. Try again shortly.',
    owner: OWNER_OF_LOAD,
  },
  out_of_memory: {
    status: 503,
    title: 'The tunnels of this workspace are out of memory for slow requests',
    visitor: 'Try again shortly, if you can over a faster connection.',
    owner: OWNER_OF_LOAD,
  },
  sign_in_busy: {
    status: 503,
    title: 'The edge is busy with other sign-ins',
    visitor: 'Wait, then reload the page.',
    owner: 'If it happens often, tell the operator of the edge.',
  },
  response_timeout: {
    status: 504,
    title: 'The local server did not respond in time',
    visitor: 'The tunnel is open, but the server behind it is slow. Try again later.',
    owner: 'Find out what your local server does with this request: it has two minutes to respond.',
  },
} as const satisfies Record<string, Cause>

export type CauseCode = keyof typeof causes

/** An error response to a visitor. */
export interface VisitorError {
  readonly cause: CauseCode
  /** A sentence about this request. It may contain input, and is escaped. */
  readonly detail?: string
  readonly headers?: Readonly<Record<string, string>>
}
