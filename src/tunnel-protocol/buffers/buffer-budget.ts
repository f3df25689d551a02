// Limits what slow receivers keep in memory: bytes that were received, and not yet sent on. From half of a
// budget on, windows shrink (`isHigh`). Beyond it, the slowest connections of the network with the most bytes
// are evicted, and all others go on. Where several budgets share a total, the largest shrink first.

import { DenseSet } from '../../lib/collections/dense-set.ts'
import type { MemoryPressure } from '../../yamux/index.ts'

/** How often buffers are measured again while a budget is high. */
const REFRESH_MS = 1_000
/** An eviction leaves this share, so that the next one is not due at once. */
const EVICTION_TARGET = 7 / 8
/** A budget may have this share of what is left of the total. */
const SHARE_OF_FREE = 1 / 4

/** A connection whose buffers count. */
export interface BufferUser {
  /** The bytes that are accounted to it. */
  readonly bufferedBytes: number
  /** The position in the set of its budget. */
  bufferPosition: number
  /** The network of its visitor. */
  readonly network: string
  /** Accounts for what its buffers hold now. */
  update(): void
  transferRate(now: number): number
  /** Releases all of its bytes before it returns. */
  evict(): void
}

/** Limits several budgets in total. */
export class SharedBufferBudget {
  readonly #bytesMax: number
  readonly #budgets = new Set<BufferBudget>()
  #bytes = 0
  #isEvicting = false
  #refresh: NodeJS.Timeout | undefined

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  get isHigh(): boolean {
    return this.#bytes > this.#bytesMax / 2
  }

  /** The slowest connections are evicted, or will be soon. */
  get isNearlyFull(): boolean {
    return this.#bytes > this.#bytesMax * EVICTION_TARGET
  }

  /** Falls while the total fills, so that those who use little are affected last. */
  get share(): number {
    return (this.#bytesMax - this.#bytes) * SHARE_OF_FREE
  }

  add(budget: BufferBudget): void {
    this.#budgets.add(budget)
  }

  delete(budget: BufferBudget): void {
    this.#budgets.delete(budget)
  }

  change(bytes: number): void {
    this.#bytes += bytes
    this.#scheduleUpdate()
    if (this.#bytes <= this.#bytesMax || this.#isEvicting) return
    this.#isEvicting = true
    process.nextTick(() => {
      this.#evict()
      this.#isEvicting = false
    })
  }

  /**
   * Repeatedly takes from the budget with the most bytes, at most half of it, until the target is reached.
   */
  #evict(): void {
    this.#update()
    if (this.#bytes <= this.#bytesMax) return
    const target = this.#bytesMax * EVICTION_TARGET
    for (let before = Number.POSITIVE_INFINITY; this.#bytes > target && this.#bytes < before; ) {
      before = this.#bytes
      let heaviest: BufferBudget | undefined
      for (const budget of this.#budgets) if (!heaviest || budget.bytes > heaviest.bytes) heaviest = budget
      heaviest?.reduceTo(Math.max(heaviest.bytes / 2, heaviest.bytes - (this.#bytes - target)))
    }
  }

  #update(): void {
    clearTimeout(this.#refresh)
    this.#refresh = undefined
    for (const budget of this.#budgets) budget.update()
    this.#scheduleUpdate()
  }

  #scheduleUpdate(): void {
    if (this.isHigh) this.#refresh ??= setTimeout(() => this.#update(), REFRESH_MS).unref()
  }
}

export class BufferBudget implements MemoryPressure {
  readonly #bytesMax: number
  readonly #shared: SharedBufferBudget | undefined
  /** The users that have bytes. */
  readonly #users = new DenseSet<'bufferPosition', BufferUser>('bufferPosition')
  #bytes = 0
  #isEvicting = false
  #refresh: NodeJS.Timeout | undefined

  constructor(bytesMax: number, shared?: SharedBufferBudget) {
    this.#bytesMax = bytesMax
    this.#shared = shared
  }

  get bytes(): number {
    return this.#bytes
  }

  get isHigh(): boolean {
    return this.#bytes > Math.min(this.#bytesMax / 2, this.#shared?.share ?? Number.POSITIVE_INFINITY)
  }

  /** Call it after `user.bufferedBytes` has changed by `bytes`. */
  change(user: BufferUser, bytes: number): void {
    if (user.bufferedBytes === 0) this.#users.delete(user)
    else if (user.bufferedBytes === bytes) this.#users.add(user)
    this.#bytes += bytes
    this.#shared?.change(bytes)
    this.#scheduleUpdate()
    if (this.#bytes <= this.#bytesMax || this.#isEvicting) return
    this.#isEvicting = true
    // This is deferred, because the caller is in the middle of a transfer.
    process.nextTick(() => {
      this.update()
      if (this.#bytes > this.#bytesMax) this.reduceTo(this.#bytesMax * EVICTION_TARGET)
      this.#isEvicting = false
    })
  }

  /** Measures all users again: they report when their buffers fill, but not when they drain. */
  update(): void {
    clearTimeout(this.#refresh)
    this.#refresh = undefined
    for (const user of this.#users) user.update()
    this.#scheduleUpdate()
  }

  #scheduleUpdate(): void {
    if (this.#bytes > this.#bytesMax / 2)
      this.#refresh ??= setTimeout(() => this.update(), REFRESH_MS).unref()
  }

  reduceTo(bytes: number): void {
    const networks = this.#networks()
    while (this.#bytes > bytes) {
      let heaviest: NetworkBuffers | undefined
      for (const network of networks) if (!heaviest || network.bytes > heaviest.bytes) heaviest = network
      const slowest = heaviest?.slowestLast.pop()
      if (!heaviest || !slowest) return
      heaviest.bytes -= slowest.bufferedBytes
      slowest.evict()
    }
  }

  #networks(): NetworkBuffers[] {
    const now = performance.now()
    return Array.from(Map.groupBy(this.#users, ({ network }) => network).values(), (users) => ({
      bytes: users.reduce((sum, { bufferedBytes }) => sum + bufferedBytes, 0),
      slowestLast: users
        .map((user) => ({ user, rate: user.transferRate(now) }))
        .sort((a, b) => b.rate - a.rate)
        .map(({ user }) => user),
    }))
  }
}

interface NetworkBuffers {
  bytes: number
  readonly slowestLast: BufferUser[]
}
