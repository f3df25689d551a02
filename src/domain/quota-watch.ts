// Watches the usage that edges report to this node. A report only notes its workspaces. Shortly afterwards,
// their usage of the month is estimated for all of them together, from few rows; where the level seems to
// have changed, it is computed exactly and stored (usage-level.ts).
import type { ChangeFollower } from '../directory/change-follower.ts'
import { createLruCache } from '../lru-cache.ts'
import { type ApproximateUsage, estimateUsage, listExhausted, listQuotas } from '../store/quotas.ts'
import { startOfDay } from '../time.ts'
import type { Services } from './context.ts'
import { hasUsageQuota, monthOf, NEAR_PERCENT, type Quotas, quotasOf } from './quotas.ts'
import { updateLevel } from './usage-level.ts'

/** From the first report to the check, so that one check serves the reports of many edges. */
const CHECK_DELAY_MS = 500
/**
 * How often workspaces that have reached a quota are checked: they report nothing, but the default may have
 * been raised, or their usage been deleted.
 */
const EXHAUSTED_INTERVAL_MS = 5_000
const EXHAUSTED_MAX = 10_000
const WORKSPACES_MAX = 200_000
/** Late reports change days before today, whose sum is read this often. */
const BASE_KEPT_MS = 60_000
/** Floating point sums are at most this far off. */
const TOLERANCE = 1e-9

export interface QuotaWatch {
  /** Usage of these workspaces was reported. */
  reported(items: Iterable<{ workspaceId: string }>): void
  stop(): Promise<void>
}

export interface QuotaWatchOptions {
  follower: Pick<ChangeFollower, 'subscribe' | 'position'>
  /** The first failure of several in a row. */
  onFailure: (error: unknown) => void
  onRecovery: () => void
}

/** What is cached of a workspace. */
interface Watched {
  /** Undefined: no quota of bytes or requests. */
  quotas: Quotas | undefined
  level: string | null
  levelUntil: number | null
  /** By the last estimate. */
  thresholds?: string
  /** Usage of this month before today. */
  base?: ApproximateUsage & { day: number; readAt: number }
}

export function startQuotaWatch(services: Services, options: QuotaWatchOptions): QuotaWatch {
  const { store, clock, defaultQuotas } = services
  const { follower, onFailure, onRecovery } = options
  const watched = createLruCache<Watched>(WORKSPACES_MAX)
  let reported = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let isStopped = false
  let isFailing = false
  let failure: unknown

  const { unsubscribe } = follower.subscribe({
    onChange({ kind, subjectId }) {
      if (kind === 'workspace-quota') watched.delete(subjectId)
    },
    onReset: () => watched.clear(),
  })

  async function loadQuotas(ids: readonly string[]): Promise<void> {
    const missing = ids.filter((id) => watched.get(id) === undefined)
    if (missing.length === 0) return
    const before = follower.position()
    const rows = await listQuotas(store.db, missing)
    // A change that arrived meanwhile may not be in the rows: the next check reads them again.
    if (follower.position() !== before) {
      for (const id of missing) reported.add(id)
      return
    }
    for (const row of rows) {
      const quotas = quotasOf(defaultQuotas, row)
      watched.set(row.id, {
        quotas: hasUsageQuota(quotas) ? quotas : undefined,
        level: row.usage_level,
        levelUntil: row.usage_level_until,
      })
    }
  }

  async function estimate(ids: readonly string[]): Promise<Map<string, ApproximateUsage>> {
    const onError = (error: unknown) => {
      failure = error
    }
    const { from, until } = monthOf(clock())
    const day = startOfDay(clock())
    const now = performance.now()
    const read = (chosen: readonly string[], from: number, until: number) =>
      estimateUsage(
        store,
        chosen.map((workspaceId) => ({ workspaceId, from, until })),
        onError,
      )
    const stale = ids.filter((id) => {
      const base = watched.get(id)?.base
      return base?.day !== day || now - base.readAt > BASE_KEPT_MS
    })
    const bases = stale.length > 0 ? await read(stale, from, day) : []
    for (const [id, sums] of bases) {
      const entry = watched.get(id)
      if (entry) entry.base = { ...sums, day, readAt: now }
    }
    const usage = new Map<string, ApproximateUsage>()
    for (const [id, { bytes, requests }] of await read(ids, day, until)) {
      const base = watched.get(id)?.base
      if (base) usage.set(id, { bytes: base.bytes + bytes, requests: base.requests + requests })
    }
    return usage
  }

  async function check(ids: readonly string[]): Promise<void> {
    await loadQuotas(ids)
    const limited = ids.filter((id) => watched.get(id)?.quotas !== undefined || watched.get(id)?.level)
    if (limited.length === 0) return
    const { until } = monthOf(clock())
    for (const [id, usage] of await estimate(limited)) {
      const entry = watched.get(id)
      if (entry && seemsChanged(entry, usage, until)) await updateLevel(services, id)
    }
  }

  async function run(ids: ReadonlySet<string>): Promise<void> {
    failure = undefined
    try {
      await check([...ids])
    } catch (error) {
      failure = error
    }
    if (failure !== undefined) {
      for (const id of ids) reported.add(id)
      if (!isFailing && !isStopped) onFailure(failure)
    } else if (isFailing) onRecovery()
    isFailing = failure !== undefined
  }

  function schedule(): void {
    if (isStopped || timer || running || reported.size === 0) return
    timer = setTimeout(() => {
      timer = undefined
      const ids = reported
      reported = new Set()
      running = run(ids).finally(() => {
        running = undefined
        schedule()
      })
    }, CHECK_DELAY_MS).unref()
  }

  async function checkExhausted(): Promise<void> {
    try {
      for (const id of await listExhausted(store.db, clock(), EXHAUSTED_MAX)) {
        const entry = watched.get(id)
        if (entry) delete entry.base
        reported.add(id)
      }
      schedule()
    } catch {
      // The database does not respond: the next time.
    }
  }
  const exhaustedTimer = setInterval(checkExhausted, EXHAUSTED_INTERVAL_MS).unref()

  return {
    reported(items) {
      for (const { workspaceId } of items) reported.add(workspaceId)
      schedule()
    },
    async stop() {
      isStopped = true
      clearTimeout(timer)
      clearInterval(exhaustedTimer)
      unsubscribe()
      await running
    },
  }
}

/** Whether the level has to be computed exactly, or there may be an alert about one of the quotas. */
function seemsChanged(entry: Watched, usage: ApproximateUsage, until: number): boolean {
  const { quotas, level, levelUntil } = entry
  const shares = [
    quotas?.bytes ? usage.bytes / quotas.bytes : 0,
    quotas?.requests ? usage.requests / quotas.requests : 0,
  ]
  const near = NEAR_PERCENT / 100
  const thresholds = shares.map((share) => (share >= 1 ? 'reached' : share >= near ? 'near' : null))
  const estimated = thresholds.includes('reached') ? 'reached' : thresholds.includes('near') ? 'near' : null
  const current = levelUntil === until ? level : null
  const isCrossed = thresholds.join() !== (entry.thresholds ?? NO_THRESHOLDS)
  entry.thresholds = thresholds.join()
  const isAround = (share: number) => shares.some((each) => Math.abs(each - share) <= TOLERANCE)
  return estimated !== current || isCrossed || isAround(near) || isAround(1)
}

const NO_THRESHOLDS = ','
