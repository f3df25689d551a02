// State of the verifier: an LRU cache of results, and the hashes of revoked keys.
import type { VerifyResult } from '../control-plane.ts'

export interface CacheEntry {
  readonly result: VerifyResult
  readonly verifiedAt: number
  /** When the key expires, on the monotonic clock; infinite if it does not. */
  readonly expiresAt: number
}

export class KeyCache {
  readonly #entries = new Map<string, CacheEntry>()
  readonly #max: number
  #generation = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Incremented when the cache is cleared: responses to earlier requests are not cached. */
  get generation(): number {
    return this.#generation
  }

  get(hash: string): CacheEntry | undefined {
    const entry = this.#entries.get(hash)
    // Reinserted: a Map iterates in insertion order, so the least recently used entry comes first.
    if (entry && this.#entries.delete(hash)) this.#entries.set(hash, entry)
    return entry
  }

  set(hash: string, entry: CacheEntry): void {
    this.#entries.set(hash, entry)
    evictOldest(this.#entries, this.#max)
  }

  delete(hash: string): void {
    this.#entries.delete(hash)
  }

  clear(): void {
    this.#generation += 1
    this.#entries.clear()
  }
}

/** Takes precedence over every response, because the node that verifies may lag behind the stream. */
export class RevokedKeys {
  readonly #hashes = new Set<string>()
  readonly #max: number
  #evictions = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Number of evicted hashes. A response from before an eviction may be about the evicted key. */
  get evictions(): number {
    return this.#evictions
  }

  has(hash: string): boolean {
    return this.#hashes.has(hash)
  }

  add(hash: string): void {
    this.#hashes.add(hash)
    if (evictOldest(this.#hashes, this.#max)) this.#evictions += 1
  }
}

/** Whether an entry was evicted. */
function evictOldest(entries: Map<string, unknown> | Set<string>, max: number): boolean {
  if (entries.size <= max) return false
  const [oldest] = entries.keys()
  return entries.delete(oldest as string)
}
