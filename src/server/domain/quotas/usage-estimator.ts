// Estimates how much of their quotas many workspaces have used in this month. It reads few rows, because it
// caches quotas and the sum of the days before today.

import { createLruCache } from '../../../lib/collections/lru-cache.ts'
import { startOfDay } from '../../../lib/time.ts'
import { type ApproximateUsage, estimateUsage, listQuotas } from '../../store/quotas.ts'
import type { ChangeFollower } from '../../verification/change-follower.ts'
import type { Quotas, Services } from '../context.ts'
import { effectiveQuotas, hasUsageQuota, monthRange, NEAR_PERCENT } from './limits.ts'

const WORKSPACES_MAX = 200_000
/** How often the sum of earlier days is read, because late reports change them. */
const BASE_TTL_MS = 60_000
/** Floating point sums are at most this far off. */
const TOLERANCE = 1e-9
const NEAR = NEAR_PERCENT / 100

/** Cache entry of a workspace. */
interface WatchedWorkspace {
  /** Undefined without a quota of bytes or requests. */
  quotas: Quotas | undefined
  level: string | null
  levelUntil: number | null
  /** The thresholds that the last computed level was based on. */
  thresholds: string
  /** Usage of this month before today. */
  base?: ApproximateUsage & { day: number; readAt: number }
}

interface Estimates {
  /** Workspaces whose level has to be computed exactly. */
  changed: string[]
  /** Workspaces without an estimate, because a read failed or their quotas changed meanwhile. */
  missing: string[]
  /** The error of a read that failed. */
  failure?: unknown
}

export function createUsageEstimator(
  { store, clock, limits }: Services,
  follower: Pick<ChangeFollower, 'subscribe'>,
) {
  const workspaces = createLruCache<WatchedWorkspace>(WORKSPACES_MAX)
  /** Workspaces whose quotas are being read, and have not changed since the read began. */
  let loading = new Set<string>()
  /** Estimated thresholds of workspaces that have changed, until they are confirmed. */
  const newThresholds = new Map<string, { entry: WatchedWorkspace; thresholds: string }>()

  const { unsubscribe } = follower.subscribe({
    onChange({ kind, subjectId }) {
      if (kind !== 'workspace-quota') return
      workspaces.delete(subjectId)
      loading.delete(subjectId)
    },
    onReset() {
      workspaces.clear()
      loading.clear()
    },
  })

  /** Returns the workspaces whose quotas changed during the read. */
  async function loadQuotas(ids: readonly string[]): Promise<string[]> {
    const uncached = ids.filter((id) => workspaces.get(id) === undefined)
    if (uncached.length === 0) return []
    loading = new Set(uncached)
    for (const row of await listQuotas(store.db, uncached)) {
      if (!loading.has(row.id)) continue
      const quotas = effectiveQuotas(limits.quotas, row)
      workspaces.set(row.id, {
        quotas: hasUsageQuota(quotas) ? quotas : undefined,
        level: row.usage_level,
        levelUntil: row.usage_level_until,
        thresholds: NONE_CROSSED,
      })
    }
    return uncached.filter((id) => !loading.has(id))
  }

  async function sumMonth(ids: readonly string[], now: number, onFailure: (error: unknown) => void) {
    const { from, until } = monthRange(now)
    const day = startOfDay(now)
    const readAt = performance.now()
    const read = (workspaceIds: readonly string[], from: number, until: number) =>
      estimateUsage(
        store,
        workspaceIds.map((workspaceId) => ({ workspaceId, from, until })),
        onFailure,
      )
    const stale = ids.filter((id) => {
      const base = workspaces.get(id)?.base
      return base?.day !== day || readAt - base.readAt > BASE_TTL_MS
    })
    const bases = stale.length > 0 ? await read(stale, from, day) : []
    for (const [id, sums] of bases) {
      const entry = workspaces.get(id)
      if (entry) entry.base = { ...sums, day, readAt }
    }
    const usage = new Map<string, ApproximateUsage>()
    for (const [id, { bytes, requests }] of await read(ids, day, until)) {
      const base = workspaces.get(id)?.base
      if (base) usage.set(id, { bytes: base.bytes + bytes, requests: base.requests + requests })
    }
    return usage
  }

  return {
    async estimate(ids: readonly string[]): Promise<Estimates> {
      const missing = await loadQuotas(ids)
      const limited = ids.filter(
        (id) => workspaces.get(id)?.quotas !== undefined || workspaces.get(id)?.level,
      )
      const estimates: Estimates = { changed: [], missing }
      newThresholds.clear()
      if (limited.length === 0) return estimates
      const now = clock()
      const usage = await sumMonth(limited, now, (error) => {
        estimates.failure = error
      })
      for (const id of limited) {
        const [entry, sums] = [workspaces.get(id), usage.get(id)]
        if (!entry || !sums) {
          missing.push(id)
          continue
        }
        const { isChanged, thresholds } = detectChange(entry, sums, monthRange(now).until)
        if (!isChanged) continue
        newThresholds.set(id, { entry, thresholds })
        estimates.changed.push(id)
      }
      return estimates
    },
    /** Call it after the level of a changed workspace was computed and its alerts were created. */
    confirm(id: string): void {
      const found = newThresholds.get(id)
      if (found) found.entry.thresholds = found.thresholds
    },
    /** Makes the next estimate read the whole month of the workspace. */
    invalidate(id: string): void {
      delete workspaces.get(id)?.base
    },
    stop: unsubscribe,
  }
}

const nameThresholds = (shares: readonly number[]) =>
  shares.map((share) => (share >= 1 ? 'reached' : share >= NEAR ? 'near' : ''))

const NONE_CROSSED = nameThresholds([0, 0]).join()

/** Whether the level has to be computed exactly, or there may be an alert about one of the quotas. */
function detectChange(
  { quotas, level, levelUntil, ...last }: WatchedWorkspace,
  usage: ApproximateUsage,
  until: number,
) {
  const shares = [
    quotas?.bytes ? usage.bytes / quotas.bytes : 0,
    quotas?.requests ? usage.requests / quotas.requests : 0,
  ]
  const crossed = nameThresholds(shares)
  const estimatedLevel = (['reached', 'near'] as const).find((each) => crossed.includes(each)) ?? null
  const currentLevel = levelUntil === until ? level : null
  const thresholds = crossed.join()
  const isNear = (share: number) => shares.some((each) => Math.abs(each - share) <= TOLERANCE)
  const isChanged =
    estimatedLevel !== currentLevel || thresholds !== last.thresholds || isNear(NEAR) || isNear(1)
  return { isChanged, thresholds }
}
