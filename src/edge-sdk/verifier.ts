// Verifies API keys, from an LRU cache while the stream of revocations is up to date and by the control plane
// otherwise.
import { hash as digest } from 'node:crypto'
import { type ControlPlane, ControlPlaneError, type VerifyResult } from './control-plane.ts'
import { followKeyChanges } from './key-changes.ts'
import { safeCallback } from './safe-callback.ts'

export interface Verifier {
  /** Rejects with a ControlPlaneError if the key cannot be verified: then deny access. */
  verify(key: string): Promise<VerifyResult>
  close(): void
}

export interface VerifierOptions {
  /** A key was revoked: close whatever it has opened. */
  onRevoked?: (keyId: string) => void
  /** Revocations may have been missed: verify the keys of everything open again. */
  onReset?: () => void
  /**
   * The control plane is reached and revocations are up to date: after the start, and after each
   * reconnection.
   */
  onConnected?: () => void
  /** Called with a line for the log when the control plane is lost or reached again. */
  onNotice?: (line: string) => void
  /** The cache is cleared if no revocations could be received for this long; 10,000 by default. */
  staleAfterMs?: number
  /** Maximum age of cached workspace details; 60,000 by default. Revalidating also updates `lastUsedAt`. */
  revalidateAfterMs?: number
  /** Capacity of the cache, 100,000 keys by default; the least recently used key is evicted first. */
  keysMax?: number
}

const REQUESTS_MAX = 1_000
const KEY_CHARS_MAX = 200

interface CacheEntry {
  result: VerifyResult
  verifiedAt: number
}

const UNKNOWN: VerifyResult = { valid: false, reason: 'unknown' }
const REVOKED: VerifyResult = { valid: false, reason: 'revoked' }

export function startVerifier(controlPlane: ControlPlane, options: VerifierOptions = {}): Verifier {
  const { staleAfterMs = 10_000, revalidateAfterMs = 60_000, keysMax = 100_000 } = options
  const onRevoked = safeCallback(options.onRevoked)
  const onReset = safeCallback(options.onReset)
  const cache = new Map<string, CacheEntry>()
  /**
   * Revoked hashes. They override every response, because the node that verifies may lag behind the stream.
   */
  const revoked = new Set<string>()
  /**
   * Number of entries evicted from `revoked`. A response from before an eviction may be about the evicted
   * key.
   */
  let evictedRevocations = 0
  const inFlight = new Map<string, Promise<VerifyResult>>()
  /** Incremented when the cache is cleared: responses to earlier requests are not cached. */
  let generation = 0
  let requests = 0

  function clearCache(): void {
    generation += 1
    cache.clear()
    inFlight.clear()
  }

  const follower = followKeyChanges(controlPlane, {
    staleAfterMs,
    onNotice: safeCallback(options.onNotice),
    onConnected: safeCallback(options.onConnected),
    onRevoked({ keyId, hash }) {
      cache.delete(hash)
      revoked.add(hash)
      if (evictOldest(revoked, keysMax)) evictedRevocations += 1
      onRevoked(keyId)
    },
    onReset() {
      clearCache()
      onReset()
    },
    onRecovered: clearCache,
  })

  async function request(key: string, hash: string): Promise<VerifyResult> {
    if (requests >= REQUESTS_MAX)
      throw new ControlPlaneError(`${REQUESTS_MAX} keys are being verified already. Retry shortly.`)
    requests += 1
    const sent = { at: performance.now(), generation, evictedRevocations, fresh: follower.isFresh() }
    try {
      const result = await controlPlane.verify(key)
      // Revoked while the response was in flight.
      if (revoked.has(hash)) return REVOKED
      if (sent.evictedRevocations !== evictedRevocations)
        throw new ControlPlaneError('Too many keys are being revoked. Retry shortly.')
      cache.delete(hash)
      const isCacheable = sent.fresh && follower.isFresh() && sent.generation === generation
      // Unknown keys are not cached: anyone can generate them.
      if (isCacheable && (result.valid || result.reason === 'revoked')) {
        cache.set(hash, { result, verifiedAt: sent.at })
        evictOldest(cache, keysMax)
      }
      return result
    } finally {
      requests -= 1
    }
  }

  /** Concurrent verifications of one key share a request. */
  function verifySingleFlight(key: string, hash: string): Promise<VerifyResult> {
    const pending = inFlight.get(hash)
    if (pending) return pending
    const result = request(key, hash).finally(() => {
      if (inFlight.get(hash) === result) inFlight.delete(hash)
    })
    inFlight.set(hash, result)
    return result
  }

  return {
    async verify(key) {
      if (key.length > KEY_CHARS_MAX) return UNKNOWN
      const hash = digest('sha256', key, 'hex')
      if (revoked.has(hash)) return REVOKED
      if (!follower.isFresh()) {
        clearCache()
        return request(key, hash)
      }
      const entry = cache.get(hash)
      if (!entry) return verifySingleFlight(key, hash)
      // Reinserted: a Map iterates in insertion order, so the least recently used entry comes first.
      cache.delete(hash)
      cache.set(hash, entry)
      if (performance.now() - entry.verifiedAt <= revalidateAfterMs) return entry.result
      return verifySingleFlight(key, hash).catch((error: ControlPlaneError) => {
        // While revocations are received the key is still valid; only the workspace details are stale.
        const cached = follower.isFresh() && cache.get(hash)
        if (!cached || error.status === 401) throw error
        return cached.result
      })
    },
    close: () => follower.stop(),
  }
}

/** Whether an entry was evicted. */
function evictOldest(entries: Map<string, unknown> | Set<string>, max: number): boolean {
  if (entries.size <= max) return false
  const [oldest] = entries.keys()
  return entries.delete(oldest as string)
}
