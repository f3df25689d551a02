// Claims the names of tunnels at the control plane, and reports open tunnels. Each sync renews a lease, so
// the tunnels of an edge that is gone are dropped when it expires. The response lists the tunnels to close
// and the changed access rules.
import { randomBytes } from 'node:crypto'
import type { ClaimedTunnel, ClaimResult, SyncResult } from '../api.ts'
import { type ControlPlane, ControlPlaneError } from '../control-plane.ts'
import type { Verifier } from '../keys/verifier.ts'
import { createNoticeOnce } from '../notice-once.ts'
import { RepeatedTask } from '../repeated-task.ts'
import { safeCallback } from '../safe-callback.ts'
import { TunnelChanges, type TunnelUsage, type UngrantedTunnel } from './changes.ts'
import { ClaimQueue } from './claim-queue.ts'
import { TrafficLease } from './traffic-lease.ts'

const USUAL_INTERVAL_S = 5
/** Bounds of the interval that the control plane asks for. */
const INTERVAL_MIN_S = 1
const INTERVAL_MAX_S = 60
/** Minimum time between early syncs, which release the names of closed tunnels. */
const EARLY_SYNC_MS = 500
/** Minimum time between syncs that acknowledge changes for which a revocation may be waiting. */
const ACKNOWLEDGE_MS = 50
const BACKOFF_MIN_MS = 1_000
const BACKOFF_MAX_MS = 10_000
const STOP_TIMEOUT_MS = 5_000

export interface TunnelReporter {
  /**
   * Claims the name of a tunnel that is about to be opened with this raw API key. If it is granted, call
   * `opened` or `closed` next. Rejects with a ControlPlaneError if the control plane cannot be reached, or if
   * too many names are being claimed (status 429).
   */
  claim(tunnel: ClaimedTunnel, key: string): Promise<ClaimResult>
  /** `usage` is read for each sync. A tunnel that was not claimed is claimed by the next sync. */
  opened(tunnel: ClaimedTunnel, key: string, usage: () => TunnelUsage): void
  closed(id: string): void
  /** Call this when the verifier calls `onTunnelsChanged`. */
  syncNow(): void
  /**
   * Whether the edge may carry traffic; always true without `onLeaseExpired`. Ask it for each request and
   * connection, and before bytes are passed on after this process may have been stopped.
   */
  mayCarry(): boolean
  /**
   * Until when the edge may carry traffic, unless that is renewed meanwhile, for another process that carries
   * it. Infinity without a limit, and undefined if `mayCarry` is false.
   */
  mayCarryUntil(): Instant | undefined
  /** Reports all tunnels as closed, so that other edges can open them, while requests in progress go on. */
  release(): Promise<void>
  /** Like `release`, when the edge carries no traffic any more: revocations do not wait for it. */
  stop(): Promise<void>
}

/** On the clocks of `performance.now()` and `Date.now()`, whichever comes first. */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

/** What the meter asks. */
export interface CountingLease {
  /**
   * Whether the edge may count its open tunnels: only under its lease, and after the control plane has said
   * which ones other edges count meanwhile. Always true without `onLeaseExpired`.
   */
  mayCount(): boolean
}

export interface TunnelReporterOptions {
  /** Obtains the grants that claims need, and follows the changes to acknowledge. */
  verifier: Pick<Verifier, 'grant'> & Partial<Pick<Verifier, 'changes'>>
  /** Name and version of the edge. */
  version: string
  /** Host and port at which this edge accepts connections of other edges of its group. */
  peerAddress?: string | undefined
  /**
   * Close this tunnel if it is open, and call `closed`. If it has `session`, also close tunnels that its
   * client has opened since, and reject the client if it comes back.
   */
  onClose: (tunnel: SyncResult['close'][number]) => void
  /** The access rules of a name have changed. They apply to its open tunnels too. */
  onAccessRules: (name: SyncResult['names'][number]) => void
  /**
   * Called after each sync, with public URLs of other edges: tell those clients of them that were told of
   * fewer, so that they can open further connections.
   */
  onOtherEdges?: (urls: readonly string[]) => void
  /**
   * With it, the edge acknowledges changes, and may carry traffic only while the control plane is reached:
   * revocations wait for it, and no longer than its lease. Called when the lease expires: reject requests and
   * connections until `onLeaseRenewed`, and abort those in progress before the function returns. At the start
   * there is no lease yet.
   */
  onLeaseExpired?: () => void
  onLeaseRenewed?: () => void
  /** Called with a line for the log. */
  onNotice?: (line: string) => void
}

export function startTunnelReporter(
  controlPlane: Pick<ControlPlane, 'claimTunnels' | 'syncTunnels'>,
  { version, peerAddress, verifier, ...callbacks }: TunnelReporterOptions,
): TunnelReporter & CountingLease {
  const onClose = safeCallback(callbacks.onClose)
  const onAccessRules = safeCallback(callbacks.onAccessRules)
  const onOtherEdges = safeCallback(callbacks.onOtherEdges)
  const notices = createNotices(safeCallback(callbacks.onNotice))
  const startedAt = new Date()
  const session = createSessionId(startedAt)
  const changes = new TunnelChanges()
  const claims = new ClaimQueue((waiting) =>
    controlPlane.claimTunnels({
      session,
      sequence: changes.nextSequence,
      grants: [...new Set(waiting.map(({ grant }) => grant))],
      tunnels: waiting.map(({ tunnel }) => tunnel),
    }),
  )
  const lease = callbacks.onLeaseExpired && verifier.changes && startLease(verifier.changes)
  let isStopping = false
  /** Whether the edge knows which tunnels it counts. Others may count them once its lease has expired. */
  let knowsCounts = lease === undefined
  let usageDueAt = Number.NEGATIVE_INFINITY
  let lastSyncAt = Number.NEGATIVE_INFINITY
  let intervalS = USUAL_INTERVAL_S
  let backoffMs = 0

  function startLease(applied: NonNullable<Verifier['changes']>): TrafficLease {
    const created = new TrafficLease({
      changes: applied,
      onExpired() {
        knowsCounts = false
        notices.lease.begin(LEASE_EXPIRED)
        safeCallback(callbacks.onLeaseExpired)()
        syncNow()
      },
      onRenewed() {
        notices.lease.end()
        safeCallback(callbacks.onLeaseRenewed)()
      },
    })
    applied.onAdvanced = (isUrgent) => {
      created.onApplied()
      if (isUrgent && created.isLimited) syncWithin(ACKNOWLEDGE_MS)
    }
    return created
  }

  /** Verifies the keys of tunnels that the control plane does not list. Returns how many got a grant. */
  async function obtainGrants(tunnels: UngrantedTunnel[]): Promise<number> {
    let obtained = 0
    await Promise.all(
      tunnels.map(async (entry) => {
        const { id } = entry.tunnel
        try {
          const grant = await verifier.grant(entry.key, entry.grant)
          if (grant === undefined) return onClose({ id, ...INVALID_KEY })
          Object.assign(entry, { grant, isGrantRequired: false })
          obtained += 1
        } catch {
          // The sync reports that the control plane does not respond, and the next one tries again.
        }
      }),
    )
    return obtained
  }

  /** Sends syncs until the control plane knows all tunnels. */
  async function sync(): Promise<void> {
    let ungranted = changes.ungranted()
    for (let hasMore = true; hasMore; ) {
      const obtained = await obtainGrants(ungranted)
      const isUsageDue = performance.now() >= usageDueAt
      const next = changes.next(isUsageDue)
      lastSyncAt = performance.now()
      const sentAt = lease?.now()
      const result = await controlPlane.syncTunnels({
        session,
        version,
        startedAt: startedAt.toISOString(),
        ...(peerAddress !== undefined && { peerAddress }),
        ...(lease && !isStopping && { applied: verifier.changes?.position }),
        ...next.changes,
      })
      if (sentAt) lease?.granted(sentAt, result.lease)
      if (result.resync && next.changes.previous === 0)
        throw new ControlPlaneError('The control plane rejected the list of open tunnels.')
      if (result.resync) changes.resync()
      else next.acknowledge(result.grantRequired)
      // A tunnel whose new grant was rejected waits for the next run, as all do if no key can be verified.
      ungranted = changes.ungranted().filter(({ grant }) => grant === undefined)
      const mayObtain = obtained > 0 || result.grantRequired.length > 0
      hasMore = result.resync || next.hasMore || (mayObtain && ungranted.length > 0)
      intervalS = Math.max(Number(result.nextSyncInS) || USUAL_INTERVAL_S, INTERVAL_MIN_S)
      // Jitter, so that edges do not sync simultaneously.
      const intervalMs = Math.min(intervalS, INTERVAL_MAX_S) * 1000 * (0.9 + Math.random() / 5)
      if (isUsageDue && !next.hasMore) usageDueAt = lastSyncAt + intervalMs
      notices.onResult(result)
      for (const tunnel of result.close) onClose(tunnel)
      for (const name of result.names) onAccessRules(name)
      onOtherEdges(result.edges ?? [])
      if (!knowsCounts && !hasMore && lease?.isValid()) {
        // A response with names may not have all of them: the next one has the rest.
        if (result.names.length > 0) syncEarly()
        else knowsCounts = true
      }
    }
  }

  /**
   * Repeats the claim once if the grant has expired, or if a later sync was applied first: only the second
   * response then has the actual reason.
   */
  async function claimWithGrant(tunnel: ClaimedTunnel, key: string): Promise<ClaimResult> {
    const send = async (grant: string | undefined): Promise<ClaimResult> =>
      grant === undefined ? { granted: false, ...INVALID_KEY } : claims.claim(tunnel, grant)
    const grant = await verifier.grant(key)
    const result = await send(grant)
    if (result.granted) return result
    if (result.reason === 'grant_required') return send(await verifier.grant(key, grant))
    return result.reason === 'outdated' ? send(grant) : result
  }

  async function syncOnce(): Promise<number> {
    try {
      await sync()
      notices.outage.end()
      backoffMs = 0
      return usageDueAt - performance.now()
    } catch (error) {
      const { message, retryAfterS = 0 } = error as ControlPlaneError
      notices.outage.begin(`Failed to report open tunnels, retrying: ${message}`)
      backoffMs = Math.min(Math.max(backoffMs * 2, BACKOFF_MIN_MS), BACKOFF_MAX_MS)
      const jitter = Math.random() / 2
      const retryAfterMs = Math.min(retryAfterS, INTERVAL_MAX_S) * 1000
      return Math.max(backoffMs * (1 - jitter), retryAfterMs * (1 + jitter))
    }
  }

  async function syncLast(): Promise<void> {
    try {
      await sync()
    } catch (error) {
      notices.log(`Failed to report the tunnels as closed: ${(error as Error).message}`)
    }
  }

  async function closeAll(report: () => Promise<void>): Promise<void> {
    changes.closeAll()
    const timeout = Promise.withResolvers<void>()
    const timer = setTimeout(timeout.resolve, STOP_TIMEOUT_MS)
    await Promise.race([report(), timeout.promise])
    clearTimeout(timer)
  }

  const task = new RepeatedTask(syncOnce)
  task.runWithin(0)

  const syncWithin = (ms: number) => task.runWithin(Math.max(0, lastSyncAt + ms - performance.now()))
  const syncEarly = () => syncWithin(EARLY_SYNC_MS)
  const syncNow = () => task.runWithin(0)
  const isKeepingUp = () => backoffMs === 0 && intervalS <= USUAL_INTERVAL_S

  return {
    async claim(tunnel, key) {
      claims.requireSpace(tunnel.workspace)
      changes.claiming(tunnel, key)
      let isGranted = false
      try {
        const result = await claimWithGrant(tunnel, key)
        isGranted = result.granted
        return result
      } catch (error) {
        // After an outage, the control plane rejects claims until it knows the open tunnels.
        if (error instanceof ControlPlaneError && error.status === 503) syncEarly()
        throw error
      } finally {
        if (!isGranted) changes.closed(tunnel.id)
      }
    },
    opened(tunnel, key, usage) {
      if (!changes.has(tunnel.id) && isKeepingUp()) syncEarly()
      changes.opened(tunnel, key, usage)
    },
    closed(id) {
      if (!changes.has(id)) return
      changes.closed(id)
      if (isKeepingUp()) syncEarly()
    },
    syncNow() {
      usageDueAt = Number.NEGATIVE_INFINITY
      syncNow()
    },
    mayCarry: () => lease?.isValid() ?? true,
    mayCount: () => (lease?.isValid() ?? true) && knowsCounts,
    mayCarryUntil: () => (lease ? lease.until() : UNLIMITED),
    release: () => closeAll(() => task.runNow()),
    async stop() {
      isStopping = true
      await closeAll(() => task.stop().then(syncLast))
      lease?.stop()
    },
  }
}

const UNLIMITED: Instant = { monotonic: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY }
const LEASE_EXPIRED =
  'The control plane has not been reached for too long: requests get 503 until it is reached again.'
const INVALID_KEY = { reason: 'invalid_key', message: 'The API key is not valid any longer.' } as const

const createSessionId = (startedAt: Date) =>
  `${startedAt.getTime().toString(36).padStart(9, '0')}-${randomBytes(8).toString('hex')}`

function createNotices(onNotice: (line: string) => void) {
  const outage = createNoticeOnce(onNotice, 'Reporting open tunnels again.')
  const replaced = createNoticeOnce(onNotice, 'The control plane lists the tunnels of this edge again.')
  return {
    log: onNotice,
    outage,
    lease: createNoticeOnce(onNotice, 'Carrying traffic again.'),
    onResult(result: SyncResult) {
      if (result.replaced)
        replaced.begin(
          'Another edge uses the credential of this one, so tunnels of this edge are not listed, and carry no ' +
            'traffic. Create a credential for each edge.',
        )
      else replaced.end()
    },
  }
}
