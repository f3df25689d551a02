// Verifies API keys, from an LRU cache while the stream of revocations is up to date and by the control plane
// otherwise.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { hashSecret, isSecret } from '../../lib/credentials/secret.ts'
import type { HostResult, UsageQuota, VerifyResult } from '../api.ts'
import { ClusterState } from '../cluster/state.ts'
import type { Cluster } from '../cluster/types.ts'
import type { ControlPlane, ControlPlaneError } from '../control-plane.ts'
import { safeCallback, warn } from '../safe-callback.ts'
import { UsageQuotas } from '../usage/quotas.ts'
import { AppliedChanges } from './applied-changes.ts'
import { type CacheEntry, KeyCache } from './cache.ts'
import { followKeyChanges } from './changes.ts'
import { Expiries } from './expiries.ts'
import { ARCHIVED, EXPIRED, REVOKED, RemoteVerifier, type RemoteVerifierOptions } from './remote-verifier.ts'

export interface Verifier {
  /** Rejects with a ControlPlaneError if the key cannot be verified: then deny access. */
  verify(key: string): Promise<VerifyResult>
  /**
   * A grant to open tunnels with the key, for the tunnel reporter, other than the grant `rejected`.
   * Undefined if the key is not valid. Rejects with a ControlPlaneError if the key cannot be verified.
   */
  grant(key: string, rejected?: string): Promise<string | undefined>
  /**
   * Whether a host is a tunnel domain or a name of a workspace. Rejects with a ControlPlaneError if the
   * control plane cannot be reached.
   */
  findHost(host: string): Promise<HostResult>
  /** Whether revocations are received, so that keys are verified from the cache. */
  isUpToDate(): boolean
  /**
   * If a workspace has used up its quota for this month: the time, in milliseconds since 1970, until which
   * new tunnels and traffic have to be rejected. Undefined otherwise.
   */
  quotaReachedUntil(workspace: string): number | undefined
  /** The other edges of this edge's group. Undefined without the option `cluster`, or a control plane. */
  readonly cluster: Cluster | undefined
  /** For the tunnel reporter, which acknowledges them. Undefined without a control plane. */
  readonly changes: AppliedChanges | undefined
  close(): void
}

export interface VerifierOptions {
  /**
   * A key was revoked or has expired: close whatever it has opened. If that is not done when the function
   * returns, it returns a promise, as `onArchived` does: before that the change is not acknowledged. `hash`
   * is the SHA-256 of the raw key.
   */
  onRevoked?: (keyId: string, reason: 'revoked' | 'expired', hash: string) => unknown
  /** A workspace was archived: close all its tunnels. Its keys are invalid until the operator restores it. */
  onArchived?: (workspace: string) => unknown
  /**
   * The quota of a workspace, or what is used of it, has changed: pass it on to `setQuota` of the meter. With
   * the level `reached`, close connections in progress.
   */
  onQuota?: (workspace: string, quota: UsageQuota) => void
  /**
   * Called when revocations may have been missed: verify the keys of all open tunnels again, and return a
   * promise that resolves when each has a result. Before that no change is acknowledged.
   */
  onReset?: () => unknown
  /**
   * A tunnel of this edge is to be closed, access rules have changed, or the control plane is reached again:
   * call `syncNow` of the tunnel reporter.
   */
  onTunnelsChanged?: () => void
  /**
   * The control plane is reached and revocations are up to date: after the start, and after each
   * reconnection.
   */
  onConnected?: () => void
  /** Called with a line for the log when the control plane is lost or reached again. */
  onNotice?: (line: string) => void
  /** The cache is cleared if no revocations could be received for this long; 10,000 by default. */
  staleAfterMs?: number
  /**
   * Maximum age of cached workspace details; 60,000 by default, and 50 at most until the workspace is
   * provisioned. Revalidating also updates `lastUsedAt`.
   */
  revalidateAfterMs?: number
  /** Whether to follow the peers and locations of this edge's group; false by default. */
  cluster?: boolean
  /** Capacity of the cache, 100,000 keys by default; the least recently used key is evicted first. */
  keysMax?: number
}

/** Short, so that tunnels can be opened right after the operator has provisioned the workspace. */
const REVALIDATE_UNPROVISIONED_MS = 50
/** Half of the lifetime of a grant. */
const GRANT_USE_MS = 300_000
const UNKNOWN: VerifyResult = { valid: false, reason: 'unknown' }

export function startVerifier(
  controlPlane: Pick<ControlPlane, 'verify' | 'findHost' | 'keyChanges'>,
  options: VerifierOptions = {},
): Verifier {
  const { staleAfterMs = 10_000, revalidateAfterMs = 60_000, keysMax = 100_000 } = options
  const onQuota = safeCallback(options.onQuota)
  const onConnected = safeCallback(options.onConnected)
  const onTunnelsChanged = safeCallback(options.onTunnelsChanged)
  const changes = new AppliedChanges(() => {
    clearCache()
    return options.onReset?.()
  })
  /** Holds the position of the changes until the program has closed what it has to. */
  function applyChange(close: () => unknown): void {
    changes.concernsThisEdge()
    try {
      const closed = close()
      if (closed instanceof Promise) closed.catch(warn).finally(changes.hold())
    } catch (error) {
      warn(error)
      changes.verifyAgain()
    }
  }
  const onRevoked = (keyId: string, reason: 'revoked' | 'expired', hash: string) =>
    applyChange(() => options.onRevoked?.(keyId, reason, hash))
  const onArchived = (workspace: string) => applyChange(() => options.onArchived?.(workspace))
  const cluster = options.cluster ? new ClusterState() : undefined
  const cache = new KeyCache(keysMax)
  const revoked = new BoundedMap<string, true>(keysMax)
  /** Valid keys, by hash. */
  const keys = new BoundedMap<string, { id: string; grant: string | undefined; verifiedAt: number }>(keysMax)
  /** Slugs of workspaces with a valid key, by topic. */
  const workspaces = new BoundedMap<string, string>(keysMax)
  /** Topics of archived workspaces, which take precedence over responses, like `revoked`. */
  const archived = new Set<string>()
  const quotas = new UsageQuotas(keysMax)
  /** Quotas by topic of workspaces that are not known yet: the verification may be in progress. */
  const otherQuotas = new BoundedMap<string, UsageQuota>(keysMax)
  const setQuota = (workspace: string, quota: UsageQuota) => {
    if (quotas.set(workspace, quota)) onQuota(workspace, quota)
  }
  const isFresh = () => follower.isFresh()
  const expiries = new Expiries({
    max: keysMax,
    onExpired(hash) {
      const key = keys.get(hash)
      if (key) onRevoked(key.id, 'expired', hash)
      else if (keys.evictions > 0) changes.verifyNow()
    },
  })
  const onExpiry = (hash: string, deadline: number) => expiries.add(hash, deadline)
  const onValid: RemoteVerifierOptions['onValid'] = (hash, { keyId, grant, workspace }, verifiedAt) => {
    const { slug, topic } = workspace
    keys.set(hash, { id: keyId, grant, verifiedAt })
    // Changes until the first id are not received, so the position would say too much of this key.
    if (changes.latestId === undefined) changes.verifyAgain()
    workspaces.set(topic, slug)
    const quota = otherQuotas.get(topic)
    otherQuotas.delete(topic)
    if (quota) setQuota(slug, quota)
  }
  const remote = new RemoteVerifier({ controlPlane, cache, revoked, changes, isFresh, onValid, onExpiry })

  const maxAgeMs = (result: VerifyResult): number =>
    result.valid && !result.workspace.provisioned
      ? Math.min(REVALIDATE_UNPROVISIONED_MS, revalidateAfterMs)
      : revalidateAfterMs

  /** The cached result, with the remaining lifetime of the key. */
  function resultAt(now: number, { result, expiresAt }: CacheEntry): VerifyResult {
    if (now >= expiresAt) return EXPIRED
    return result.valid && result.expiresInMs !== undefined
      ? { ...result, expiresInMs: Math.floor(expiresAt - now) }
      : result
  }

  function clearCache(): void {
    cache.clear()
    remote.detachInFlight()
  }

  const follower = followKeyChanges(controlPlane, {
    staleAfterMs,
    cluster,
    changes,
    onNotice: safeCallback(options.onNotice),
    onConnected() {
      onConnected()
      onTunnelsChanged()
    },
    onTunnelsChanged,
    onRevoked({ hash }) {
      cache.delete(hash)
      revoked.set(hash, true)
      cluster?.revoked(hash)
      const key = keys.get(hash)
      if (key) onRevoked(key.id, 'revoked', hash)
      // An unknown key or workspace concerns other edges only, unless this edge has evicted some.
      else if (keys.evictions > 0) changes.verifyAgain()
    },
    onExpiryChanged({ hash, expiresInMs }) {
      cache.delete(hash)
      onExpiry(hash, performance.now() + expiresInMs)
      if (keys.has(hash)) changes.concernsThisEdge()
    },
    onArchivedChanged(topic, isArchived) {
      if (!isArchived) return void archived.delete(topic)
      archived.add(topic)
      const workspace = workspaces.get(topic)
      if (workspace !== undefined) onArchived(workspace)
      else if (workspaces.evictions > 0) changes.verifyAgain()
    },
    onQuotaChanged(topic, quota) {
      const workspace = workspaces.get(topic)
      if (workspace === undefined) otherQuotas.set(topic, quota)
      else setQuota(workspace, quota)
    },
    onReset() {
      // A restoration or a raised quota may have been missed.
      archived.clear()
      quotas.clear()
      clearCache()
      changes.reset()
    },
    onFresh: clearCache,
  })

  async function verify(key: string): Promise<VerifyResult> {
    // Anyone can send a malformed key, which must not cause a request.
    if (!isSecret('key', key)) return UNKNOWN
    const hash = hashSecret(key)
    if (revoked.has(hash)) return REVOKED
    if (!isFresh()) {
      clearCache()
      return remote.verifyRemotely(key, hash)
    }
    const entry = cache.get(hash)
    const now = performance.now()
    if (entry && now - entry.verifiedAt <= maxAgeMs(entry.result)) return resultAt(now, entry)
    const result = remote.verifySingleFlight(key, hash)
    if (!entry) return result
    return result.catch((error: ControlPlaneError) => {
      // While revocations are received, the key is valid and only the workspace details are stale.
      const cached = isFresh() && cache.get(hash)
      if (!cached || error.status === 401) throw error
      return resultAt(performance.now(), cached)
    })
  }

  return {
    async verify(key) {
      const result = await verify(key)
      if (!result.valid) return result
      const { slug, topic, quota } = result.workspace
      if (quota) setQuota(slug, quota)
      return archived.has(topic) ? ARCHIVED : result
    },
    async grant(key, rejected) {
      const hash = hashSecret(key)
      const current = keys.get(hash)
      if (current && current.grant !== rejected && performance.now() - current.verifiedAt <= GRANT_USE_MS)
        return current.grant
      const result = await remote.verifySingleFlight(key, hash)
      return result.valid ? result.grant : undefined
    },
    quotaReachedUntil: (workspace) => quotas.reachedUntil(workspace, Date.now()),
    findHost: (host) => controlPlane.findHost(host),
    isUpToDate: isFresh,
    cluster,
    changes,
    close() {
      follower.stop()
      expiries.stop()
    },
  }
}
