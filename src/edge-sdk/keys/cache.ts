// LRU cache of verification results.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import type { VerifyResult } from '../api.ts'

export interface CacheEntry {
  readonly result: VerifyResult
  readonly verifiedAt: number
  /** When the key expires, on the monotonic clock; infinite if it does not. */
  readonly expiresAt: number
}

export class KeyCache extends BoundedMap<string, CacheEntry> {
  /** Incremented when the cache is cleared: responses to earlier requests are not cached. */
  generation = 0

  override get(hash: string): CacheEntry | undefined {
    const entry = super.get(hash)
    // Set again, because the entry that was set least recently is evicted first.
    if (entry) this.set(hash, entry)
    return entry
  }

  override clear(): void {
    this.generation += 1
    super.clear()
  }
}
