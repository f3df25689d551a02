// The local HTTP API of the inspector: what its page and `adit requests` read and change. This file runs in a
// browser too, so it imports nothing.
//
// Two listeners serve the same routes:
// - http://127.0.0.1:4040, or the next free port, for the page. A request needs `Host: 127.0.0.1:<port>` or
//   `localhost:<port>`, and no `Origin` but that one; anything else gets 403 without a body. Routes under
//   /api/ need `Authorization: Bearer <bearer>`.
// - a Unix socket (a named pipe on Windows) of the user, for programs. It needs no bearer.
//
// Access of the page: the link is `http://127.0.0.1:<port>/#token=<token>`. The page removes the fragment
// from the address, sends the token in the body of `POST /api/session`, once, and keeps the bearer in
// sessionStorage. No cookie is used, and no secret is in a path. 401 `token_used` and 401 `unauthorized` mean
// that a new link is needed, which `adit requests link` prints.
//
// Static files of the page: GET / and GET /assets/<name>, from web/dist/inspector, which web/build.ts builds.
// In the package adit-cli the folder is `inspector`, beside main.js. `__CSP_NONCE__` in index.html is
// replaced by the nonce for styles. Without index.html, no link is printed.
//
// The values of Authorization, Proxy-Authorization, Cookie, Set-Cookie and the headers of `--mask-header` are
// masked in requests, responses and trailers, until `reveal=true`. A search does not look into them.

export const API = {
  /** POST SessionRequest → Session. The only route that needs no bearer. */
  session: '/api/session',
  /** GET → Info. */
  info: '/api/info',
  /** GET ?ListQuery → ExchangeList, newest first. DELETE → 204: forgets all exchanges. */
  requests: '/api/requests',
  /** GET ?reveal=true&wait=<seconds> → Exchange. `wait`: responds when it is complete, at most 60 s later. */
  request: (id: string) => `/api/requests/${id}`,
  /** GET ?after=<number> → MessageList: the messages after that number. */
  messages: (id: string) => `/api/requests/${id}/messages`,
  /**
   * GET → the recorded bytes of a body without its transfer encoding, as application/octet-stream. With
   * `?decoded=true` without its content encoding, too.
   */
  body: (id: string, of: 'request' | 'response') => `/api/requests/${id}/${of}/body`,
  /** POST ReplayRequest → 202 Replayed, as soon as the request is on its way. */
  replay: (id: string) => `/api/requests/${id}/replay`,
  /** POST SignatureRequest → SignatureResult. */
  signature: (id: string) => `/api/requests/${id}/signature`,
  /**
   * GET ?ListQuery&ids=<id,…>&reveal=true → a HAR 1.2 document, oldest first, of all that match; `limit` and
   * `cursor` have no effect.
   */
  har: '/api/har',
  /**
   * GET → text/event-stream, to be read with fetch, because EventSource sends no bearer. The events are those
   * of `LiveEvents`, and a comment every 15 seconds. A reader that is too slow is disconnected, and loads
   * the list again.
   */
  events: '/api/events',
  /** POST {} → Link: a new link for a browser. On the Unix socket only. */
  link: '/api/link',
} as const

export const LIMITS = {
  /** What a program keeps; the oldest complete exchanges are evicted, or pending ones if most are. */
  exchanges: 500,
  recordedBytes: 64 * 1024 * 1024,
  /** What is kept of a body, as transferred; the rest is only counted. */
  bodyBytes: 1024 * 1024,
  /** What is shown of a body without its content encoding. */
  decodedBytes: 4 * 1024 * 1024,
  /** How many bytes are shown as hexadecimal text: the first ones. */
  hexBytes: 16 * 1024,
  /** What is kept of a WebSocket or SSE message. */
  messageBytes: 64 * 1024,
  /** How many messages of an exchange are kept, and the memory for them; the oldest are dropped. */
  messages: 1_000,
  messagesBytes: 4 * 1024 * 1024,
  /** How many exchanges a list has. */
  pageSize: 500,
  pageSizeDefault: 100,
  /** How long a text from a head, such as the path, is in a list; a longer one is cut. */
  listedChars: 2_000,
  /** How long each text of a ListQuery may be. */
  queryChars: 500,
  /** How large the body of a request to this API may be. */
  requestBytes: 2 * 1024 * 1024,
  eventStreams: 10,
  sessions: 20,
} as const

/** What a masked value is replaced by. */
export const MASK = '[masked]'

export interface SessionRequest {
  readonly token: string
}

export interface Session {
  readonly bearer: string
}

export interface Link {
  readonly url: string
}

export interface TunnelInfo {
  /** The first part of the host name; it is empty until the tunnel is open. */
  readonly name: string
  /** The public URL; it is empty until the tunnel is open. */
  readonly url: string
  /** URL of the local server. */
  readonly target: string
}

export interface Info {
  /** The version of the program. */
  readonly version: string
  /** Starts the program again, though not with all options. Absent if there is no page. */
  readonly command?: string
  readonly tunnels: readonly TunnelInfo[]
  /** Names in lower case. */
  readonly maskedHeaders: readonly string[]
  readonly limits: typeof LIMITS
  /** How many exchanges are kept now, their bytes, and how many were evicted since the start. */
  readonly exchanges: number
  readonly recordedBytes: number
  readonly evicted: number
}

/** Its exchange has no path and no headers. */
export const UNKNOWN_METHOD = '?'

/** Milliseconds are since `startedAt`, with fractions. */
export interface ExchangeSummary {
  /** `[a-z0-9]{4}-[0-9]+`; the number grows. */
  readonly id: string
  /** Name of the tunnel. */
  readonly tunnel: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly kind: 'http' | 'websocket' | 'sse'
  /**
   * - `pending`: the response is not complete, or the WebSocket is open;
   * - `complete`;
   * - `aborted`: the connection ended before the response was complete;
   * - `unrecorded`: the rest could not be recorded, `problem` says why.
   */
  readonly state: 'pending' | 'complete' | 'aborted' | 'unrecorded'
  /** UNKNOWN_METHOD if not even the head of the request was recorded. */
  readonly method: string
  /** Path and query. In a list, up to LIMITS.listedChars, and `…` if there are more. */
  readonly path: string
  /** Host header of the request, as the local server got it. */
  readonly host: string
  /** Absent until the head of the response has arrived. */
  readonly status?: number
  /** The media type of the response, without parameters, in lower case. */
  readonly contentType?: string
  /** Bytes of the bodies as transferred, or of the messages, so far. */
  readonly requestBytes: number
  readonly responseBytes: number
  /** When the head of the response arrived, and when the exchange ended, complete or not. */
  readonly firstByteMs?: number
  readonly lastByteMs?: number
  /** How many messages there were so far. */
  readonly messages: number
  /** Id of the exchange that this one replays; it may have been evicted since. */
  readonly replayOf?: string
  /** It was edited before it was replayed. */
  readonly edited?: true
  /** Also of a complete one, if later requests of the same connection could not be recorded. */
  readonly problem?: string
}

export interface Header {
  readonly name: string
  /** MASK if `masked`. */
  readonly value: string
  readonly masked?: true
}

/** What a page may show of a body. Never rendered as HTML. */
export type BodyView =
  | { readonly type: 'empty' }
  /** Pretty-printed if `format` is json or form; longer texts have the format text. */
  | { readonly type: 'text'; readonly format: 'json' | 'form' | 'text'; readonly text: string }
  /** PNG, JPEG, GIF, WebP or AVIF, by its first bytes; for `<img src="data:<mediaType>;base64,<base64>">`. */
  | { readonly type: 'image'; readonly mediaType: string; readonly base64: string }
  /** Lines of offset, 16 bytes and ASCII. */
  | { readonly type: 'hex'; readonly text: string }

export interface Body {
  /** As transferred. */
  readonly bytes: number
  /** Kept; fewer than `bytes` if `cut`. */
  readonly recordedBytes: number
  /** The recorded part is not the whole body: it was too large, or is not complete. */
  readonly cut: boolean
  /** The content encodings that were decoded for `view`, such as `gzip`. */
  readonly decoded: readonly string[]
  /** Why an encoding was not decoded; `view` is then of the bytes as they are. */
  readonly decodeProblem?: string
  /** The view has not all of the recorded part. */
  readonly viewCut: boolean
  readonly view: BodyView
}

export interface RecordedRequest {
  /** `1.1` or `1.0`. */
  readonly httpVersion: string
  readonly headers: readonly Header[]
  readonly body: Body
  readonly trailers: readonly Header[]
}

export interface RecordedResponse extends RecordedRequest {
  readonly status: number
  readonly reason: string
}

export interface Exchange extends ExchangeSummary {
  readonly request: RecordedRequest
  /** Absent until the head of the response has arrived. */
  readonly response?: RecordedResponse
  /**
   * Whether it can be replayed as it was. If only its body was cut, a replay with another body is possible.
   */
  readonly replayable: boolean
  readonly replayProblem?: string
  /** URL of the local server to which a replay goes. */
  readonly target: string
}

/** Texts match parts of the value, in any case. */
export interface ListQuery {
  /** Name of a tunnel, as a whole. */
  readonly tunnel?: string
  /** As a whole, in any case. */
  readonly method?: string
  /** `404`, `4xx`, `400-499`, or `none` for those without a response. */
  readonly status?: string
  readonly path?: string
  readonly kind?: ExchangeSummary['kind']
  /** ISO 8601: those that started then or later. */
  readonly since?: string
  /**
   * Looks into method, path, header names, header values that are not masked, text of bodies and messages.
   */
  readonly search?: string
  /** Up to LIMITS.pageSize. */
  readonly limit?: number
  /** `nextCursor` of the page before. */
  readonly cursor?: string
}

export interface ExchangeList {
  readonly requests: readonly ExchangeSummary[]
  /** Absent on the last page. */
  readonly nextCursor?: string
}

export interface Message {
  /** Counts from 1 in each exchange. */
  readonly number: number
  /** Milliseconds since `startedAt` of the exchange. */
  readonly ms: number
  readonly from: 'client' | 'server'
  /** `sse` has an event of a response with text/event-stream. */
  readonly type: 'text' | 'binary' | 'ping' | 'pong' | 'close' | 'sse'
  /** As transferred, without framing. */
  readonly bytes: number
  /** The text is not all of the message. */
  readonly cut: boolean
  /** Text; of `binary`, `ping` and `pong` hexadecimal lines as in BodyView. */
  readonly text: string
  /** Fields of an SSE event other than its data. */
  readonly event?: string
  readonly eventId?: string
  /** Status code of `close`. */
  readonly code?: number
  /** Why it could not be decoded; `text` is then the compressed payload in hexadecimal. */
  readonly problem?: string
}

export interface MessageList {
  readonly messages: readonly Message[]
  /** How many of the oldest messages of the exchange are not kept. */
  readonly dropped: number
}

/** A replay is possible, though perhaps only with another body. */
export const isReplayable = ({ kind, method }: ExchangeSummary): boolean =>
  kind !== 'websocket' && method !== UNKNOWN_METHOD

/** They frame the body or belong to the connection: an edited replay has its own. In lower case. */
export const FRAMING_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Sent as recorded if it is empty: the same method, path, headers in their order and spelling, and body. */
export interface ReplayRequest {
  readonly method?: string
  /** Path and query; it starts with `/`. The host is always that of the recorded target. */
  readonly path?: string
  /**
   * All headers, sent as they are, except for FRAMING_HEADERS: Content-Length is that of the body, the others
   * are not sent.
   */
  readonly headers?: readonly ReplayHeader[]
  /** Text in UTF-8, or bytes. The recorded body if neither is present. */
  readonly body?: { readonly text: string } | { readonly base64: string }
}

/**
 * With `recorded`, the value of that header of the recorded request (counted from 0), which may be masked. It
 * must have the same name, in any case.
 */
export type ReplayHeader =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly recorded: number }

export interface Replayed {
  readonly request: ExchangeSummary
}

export const SIGNATURE_SCHEMES = ['stripe', 'github', 'slack', 'standard-webhooks'] as const
export type SignatureScheme = (typeof SIGNATURE_SCHEMES)[number]

export interface SignatureRequest {
  readonly scheme: SignatureScheme
  /** Used for this check only, and not kept. */
  readonly secret: string
}

export interface SignatureResult {
  readonly valid: boolean
  /**
   * `too_old` and `in_future` compare the signed time with the time at which the request arrived, and are
   * reported only if the signature itself is right.
   */
  readonly reason:
    | 'ok'
    | 'missing_header'
    | 'malformed_header'
    | 'invalid_secret'
    | 'mismatch'
    | 'too_old'
    | 'in_future'
    | 'body_cut'
  /** A sentence for the user. */
  readonly message: string
  /** The signed time, ISO 8601; absent for schemes without one. */
  readonly signedAt?: string
}

/** Names and data of the events of `API.events`. */
export interface LiveEvents {
  /** New ones and changed ones, collected for up to 100 ms; `messages` of a summary tells of new messages. */
  readonly requests: { readonly requests: readonly ExchangeSummary[] }
  /** Evicted. */
  readonly removed: { readonly ids: readonly string[] }
  readonly cleared: Record<string, never>
  /** A tunnel was opened or got another URL. */
  readonly tunnels: { readonly tunnels: readonly TunnelInfo[] }
}

/** The body of every error but 403, which has none. */
export interface ApiError {
  readonly error: /** 400 */
    | 'invalid_request'
    /** 401 */
    | 'unauthorized'
    | 'token_used'
    /** 404; also of an exchange that was evicted. */
    | 'not_found'
    /** 405 */
    | 'method_not_allowed'
    /** 409: it was not recorded as a whole, or is a WebSocket. */
    | 'not_replayable'
    /** 413 */
    | 'too_large'
    /** 429: too many event streams or replays at once. */
    | 'too_many'
    /** 500 */
    | 'internal'
    /** 502: the local server cannot be reached. */
    | 'target_unreachable'
  /** A sentence for the user. */
  readonly message: string
}
