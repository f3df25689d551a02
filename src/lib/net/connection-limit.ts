// Limits of the open connections of a server: per client, and in total below the descriptors of the process.
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { Throttle } from '../throttle.ts'
import { MINUTE_MS } from '../time.ts'
import { ClientLimit } from './client-limit.ts'

const CONNECTIONS_PER_CLIENT = { max: 500, maxPer48: 2_000 }
/** Descriptors for the database, files, listening sockets and connections to other servers. */
const OTHER_DESCRIPTORS = 256
/** Idle connections are closed beyond this share of the total. */
const CROWDED = 0.9
const CROWDED_INTERVAL_MS = 1_000

type ConnectionLimitReached =
  | { readonly limit: 'client'; readonly client: string | undefined; readonly max: number }
  | { readonly limit: 'total'; readonly max: number }

export interface ConnectionLimitOptions {
  /** Called at most once a second while nearly all connections are in use. */
  closeIdleConnections(): void
  /** Called at most once a minute for each limit. */
  onReached(reached: ConnectionLimitReached): void
}

export class ConnectionLimit {
  readonly #options: ConnectionLimitOptions
  readonly #perClient = new ClientLimit(CONNECTIONS_PER_CLIENT)
  readonly #max = readConnectionsMax()
  #open = 0
  readonly #throttle = new Throttle()

  constructor(options: ConnectionLimitOptions) {
    this.#options = options
  }

  /** Nearly all connections are in use. */
  get isCrowded(): boolean {
    return this.#open >= this.#max * CROWDED
  }

  /**
   * Returns a function that releases the slot of the client, to be called once, at the latest when the
   * connection closes. Undefined, and the connection is closed, if a limit is reached. Unknown clients have
   * no limit of their own.
   */
  admit(socket: Socket, client: string | undefined): (() => void) | undefined {
    if (this.isCrowded) this.#throttle.run('crowded', CROWDED_INTERVAL_MS, this.#options.closeIdleConnections)
    const release = this.#open < this.#max ? this.#perClient.acquire(client) : undefined
    if (!release) {
      socket.destroy()
      const reached: ConnectionLimitReached =
        this.#open < this.#max
          ? { limit: 'client', client, max: CONNECTIONS_PER_CLIENT.max }
          : { limit: 'total', max: this.#max }
      this.#throttle.run(reached.limit, MINUTE_MS, () => this.#options.onReached(reached))
      return undefined
    }
    this.#open += 1
    socket.once('close', () => {
      this.#open -= 1
    })
    return release
  }
}

/** A process with very few descriptors keeps half of them for connections. */
function readConnectionsMax(): number {
  const descriptors = readDescriptorLimit()
  return Math.max(descriptors - OTHER_DESCRIPTORS, Math.floor(descriptors / 2))
}

/** Infinite on systems without /proc. */
function readDescriptorLimit(): number {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
