// What the load process is asked to do, and what it answers.

/** A request; where its body says `{n}`, a number stands that grows with every request. */
export interface Ask {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: string
}

/** `all`: every connection goes through the list, each from another place. `one`: each keeps to its own. */
export interface Requests {
  kind: 'requests'
  requests: Ask[]
  each: 'all' | 'one'
}

/** Verifications of keys out of a file, `count` of them from line `from` on, dealt out to the connections. */
export interface Keys {
  kind: 'keys'
  file: string
  /** How many lines of the file there are to draw from. */
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
  /** For that long, or until so many are answered. */
  until: { seconds: number } | { amount: number }
  /** What every answer must be, or begin with. */
  expect?: { body: string } | { starts: string }
}

/** Requests at a steady pace, whether or not earlier ones were answered. */
export interface Pace {
  url: string
  connections: number
  request: Ask
  perSecond: number
  seconds: number
}

export interface Outcome {
  completed: number
  seconds: number
  perSecond: number
  p50: number
  p99: number
}

export type Order = { job: Job } | { pace: Pace }
export type Word = { ready: true } | { outcome: Outcome } | { failed: string }
