// Messages to and from the load process.

/** `{n}` in the body is replaced by a number that grows with every request; `host` replaces the URL's. */
export interface RequestSpec {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  headers: Record<string, string>
  body?: string
}

/**
 * `all`: every connection sends the whole list, from different offsets. `one`: each connection repeats one
 * request.
 */
export interface Requests {
  kind: 'requests'
  requests: RequestSpec[]
  each: 'all' | 'one'
}

/** Verifications of `count` keys of a file, from line `from` on, distributed over the connections. */
export interface Keys {
  kind: 'keys'
  file: string
  /** Number of lines to use. */
  lines: number
  from: number
  count: number
  path: string
  headers: Record<string, string>
}

export interface Job {
  url: string
  connections: number
  draw: Requests | Keys
  /** A duration, or a number of responses. */
  until: { seconds: number } | { amount: number }
  /** How the body of every response begins. */
  bodyPrefix?: string
  /** Each request has a connection of its own, which is closed after the response. */
  isNewEach?: boolean
}

/** One download of `/down/{bytes}`, or upload to `/up`. */
export interface Transfer {
  url: string
  host: string
  direction: 'down' | 'up'
  bytes: number
}

/** One message after the other on each WebSocket, each sent when the last one has come back. */
export interface Echo {
  url: string
  host: string
  connections: number
  messageBytes: number
  until: Job['until']
}

/** Downloads of `/down/{bytes}` over and over, and small requests on another connection meanwhile. */
export interface Mixed {
  url: string
  host: string
  downloads: number
  bytes: number
  until: Job['until']
}

export interface Outcome {
  /** Requests, messages, or bytes of downloads and uploads. */
  completed: number
  seconds: number
  /** Of the small requests of `Mixed`. */
  medianMs?: number
}

export type Order = { job: Job } | { transfer: Transfer } | { echo: Echo } | { mixed: Mixed }
export type LoadMessage = { ready: true } | { outcome: Outcome } | { failed: string }
