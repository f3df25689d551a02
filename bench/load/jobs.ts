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
  /** The body of every response, or its beginning. */
  expect?: { body: string } | { starts: string }
}

/** Requests at a constant rate, independent of earlier responses. */
export interface Pace {
  url: string
  connections: number
  request: RequestSpec
  perSecond: number
  seconds: number
}

/** One request repeated over raw sockets, for a duration or a number of responses. */
export interface Repeat {
  url: string
  connections: number
  request: RequestSpec
  until: Job['until']
}

/** One download of `/down/{bytes}`, or upload to `/up`. */
export interface Transfer {
  url: string
  host: string
  direction: 'down' | 'up'
  bytes: number
}

export interface Outcome {
  completed: number
  seconds: number
  perSecond: number
  p50: number
  p99: number
}

export type Order = { job: Job } | { pace: Pace } | { repeat: Repeat } | { transfer: Transfer }
export type LoadMessage = { ready: true } | { outcome: Outcome } | { failed: string }
