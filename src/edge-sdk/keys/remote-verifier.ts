// Verifies keys with the control plane, and caches results that no missed revocation can contradict.
import type { BoundedMap } from '../../lib/collections/bounded-map.ts'
import type { VerifyResult } from '../api.ts'
import { type ControlPlane, ControlPlaneError } from '../control-plane.ts'
import type { AppliedChanges } from './applied-changes.ts'
import type { KeyCache } from './cache.ts'

const REQUESTS_MAX = 1_000

export const REVOKED: VerifyResult = { valid: false, reason: 'revoked' }
export const EXPIRED: VerifyResult = { valid: false, reason: 'expired' }
export const ARCHIVED: VerifyResult = { valid: false, reason: 'archived' }

export interface RemoteVerifierOptions {
  readonly controlPlane: Pick<ControlPlane, 'verify'>
  readonly cache: KeyCache
  /**
   * Hashes of revoked keys, which take precedence over every response: the node that verifies may lag behind
   * the stream. A response from before an eviction may be about the key that was evicted.
   */
  readonly revoked: BoundedMap<string, true>
  readonly changes: Pick<AppliedChanges, 'latestId' | 'verifications'>
  /** Whether revocations are up to date. */
  isFresh(): boolean
  /** Called with a valid result before `verifyRemotely` returns it. */
  onValid(hash: string, result: VerifyResult & { valid: true }, verifiedAt: number): void
  /** Called if a valid key expires; the deadline is on the monotonic clock. */
  onExpiry(hash: string, deadline: number): void
}

export class RemoteVerifier {
  readonly #options: RemoteVerifierOptions
  readonly #inFlight = new Map<string, Promise<VerifyResult>>()
  #activeRequests = 0

  constructor(options: RemoteVerifierOptions) {
    this.#options = options
  }

  async verifyRemotely(key: string, hash: string): Promise<VerifyResult> {
    if (this.#activeRequests >= REQUESTS_MAX)
      throw new ControlPlaneError(`${REQUESTS_MAX} keys are being verified already. Retry shortly.`, 429)
    this.#activeRequests += 1
    const { controlPlane, cache, revoked, changes, isFresh, onValid, onExpiry } = this.#options
    const { generation } = cache
    const { evictions } = revoked
    const { verifications, latestId } = changes
    const verifiedAt = performance.now()
    const wasFresh = isFresh()
    try {
      const result = await controlPlane.verify(key, latestId)
      // The key was revoked while the request was in flight.
      if (revoked.has(hash)) return REVOKED
      if (evictions !== revoked.evictions)
        throw new ControlPlaneError('Too many keys are being revoked. Retry shortly.', 429)
      // What the response does not take into account will not be received any more.
      const isOutdated = latestId === undefined && changes.latestId !== undefined
      if (isOutdated || verifications !== changes.verifications) return await this.verifyRemotely(key, hash)
      cache.delete(hash)
      const isCacheable = wasFresh && isFresh() && generation === cache.generation
      // Counted from the start of the request, so that a delayed response does not extend the lifetime.
      const expiresAt =
        result.valid && result.expiresInMs !== undefined
          ? verifiedAt + result.expiresInMs
          : Number.POSITIVE_INFINITY
      if (expiresAt <= performance.now()) return EXPIRED
      if (result.valid) {
        onValid(hash, result, verifiedAt)
        if (expiresAt !== Number.POSITIVE_INFINITY) onExpiry(hash, expiresAt)
      }
      // Unknown keys are not cached, because anyone can generate them, nor keys of an archived workspace,
      // because it may be restored.
      if (isCacheable && (result.valid || (result.reason !== 'unknown' && result.reason !== 'archived')))
        cache.set(hash, { result, verifiedAt, expiresAt })
      return result
    } finally {
      this.#activeRequests -= 1
    }
  }

  /** Concurrent verifications of one key share a request. */
  verifySingleFlight(key: string, hash: string): Promise<VerifyResult> {
    const pending = this.#inFlight.get(hash)
    if (pending) return pending
    const result = this.verifyRemotely(key, hash).finally(() => {
      if (this.#inFlight.get(hash) === result) this.#inFlight.delete(hash)
    })
    this.#inFlight.set(hash, result)
    return result
  }

  /** Makes later verifications send requests of their own. */
  detachInFlight(): void {
    this.#inFlight.clear()
  }
}
