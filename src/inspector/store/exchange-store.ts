// The exchanges of this program, in memory only: the last ones, bounded by their number and their bytes.
import { randomInt } from 'node:crypto'
import { LIMITS, type TunnelInfo } from '../api.ts'
import type { RecordedExchange, RecordedTunnel } from './exchange.ts'

interface StoreListener {
  /** It was added, or has changed. */
  onChange?(exchange: RecordedExchange): void
  onEvict?(id: string): void
  onClear?(): void
  onTunnels?(): void
}

/** The limit for incomplete heads of all streams together: there are no exchanges to evict for them. */
const HEAD_BYTES_MAX = 8 * 1024 * 1024
const PREFIX_LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'
const PREFIX_LENGTH = 4

export class ExchangeStore {
  readonly #exchanges = new Map<string, RecordedExchange>()
  readonly #sizes = new Map<RecordedExchange, number>()
  readonly #listeners = new Set<StoreListener>()
  readonly #tunnels = new Set<RecordedTunnel>()
  /** Tells the exchanges of several programs apart. */
  readonly #prefix = Array.from(
    { length: PREFIX_LENGTH },
    () => PREFIX_LETTERS[randomInt(PREFIX_LETTERS.length)],
  ).join('')
  #last = 0
  #bytes = 0
  #headBytes = 0
  #evicted = 0

  get size(): number {
    return this.#exchanges.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** How many exchanges had to make room for others. */
  get evicted(): number {
    return this.#evicted
  }

  get tunnels(): TunnelInfo[] {
    return Array.from(this.#tunnels, ({ name, url, target }) => ({ name, url, target }))
  }

  addTunnel(tunnel: RecordedTunnel): void {
    this.#tunnels.add(tunnel)
    this.#notify((listener) => listener.onTunnels?.())
  }

  /** The tunnel is open, or was opened again. */
  setUrl(tunnel: RecordedTunnel, name: string, url: string): void {
    Object.assign(tunnel, { name, url })
    this.#notify((listener) => listener.onTunnels?.())
  }

  /** Returns a function that ends it. */
  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  add(exchange: RecordedExchange): void {
    this.#last += 1
    exchange.id = `${this.#prefix}-${this.#last}`
    this.#exchanges.set(exchange.id, exchange)
    this.changed(exchange)
  }

  /** Call it after an exchange of the store has changed. */
  changed(exchange: RecordedExchange): void {
    if (exchange.isEvicted) return
    const bytes = exchange.bytes
    this.#bytes += bytes - (this.#sizes.get(exchange) ?? 0)
    this.#sizes.set(exchange, bytes)
    this.#notify((listener) => listener.onChange?.(exchange))
    this.#makeRoom()
  }

  /**
   * Adds or subtracts memory of heads that have not arrived completely, whose exchanges do not exist yet.
   * Returns whether it is within its limit.
   */
  countHeads(bytes: number): boolean {
    this.#headBytes += bytes
    this.#bytes += bytes
    this.#makeRoom()
    return this.#headBytes <= HEAD_BYTES_MAX
  }

  find(id: string): RecordedExchange | undefined {
    return this.#exchanges.get(id)
  }

  /** Oldest first. */
  all(): RecordedExchange[] {
    return [...this.#exchanges.values()]
  }

  clear(): void {
    for (const exchange of this.all()) this.#remove(exchange)
    this.#notify((listener) => listener.onClear?.())
  }

  #makeRoom(): void {
    while (this.#exchanges.size > LIMITS.exchanges || this.#bytes > LIMITS.recordedBytes) {
      const oldest = this.#oldest()
      if (!oldest) return
      this.#remove(oldest)
      this.#evicted += 1
      this.#notify((listener) => listener.onEvict?.(oldest.id))
    }
  }

  /**
   * The oldest complete one; if most are pending, the oldest of those, so that they leave room for others.
   */
  #oldest(): RecordedExchange | undefined {
    let pending = 0
    let oldestPending: RecordedExchange | undefined
    let oldestDone: RecordedExchange | undefined
    for (const exchange of this.#exchanges.values()) {
      if (exchange.state !== 'pending') oldestDone ??= exchange
      else {
        oldestPending ??= exchange
        pending += 1
      }
    }
    return 2 * pending > this.#exchanges.size ? oldestPending : oldestDone
  }

  #remove(exchange: RecordedExchange): void {
    this.#exchanges.delete(exchange.id)
    this.#bytes -= this.#sizes.get(exchange) ?? 0
    this.#sizes.delete(exchange)
    exchange.evict()
  }

  #notify(act: (listener: StoreListener) => void): void {
    for (const listener of this.#listeners) act(listener)
  }
}
