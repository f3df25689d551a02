// Watches the usage that edges report to this node. Shortly after a report, the month's usage of its
// workspaces is estimated, together with those of other reports (usage-estimator.ts). Where the level seems
// to have changed, it is computed exactly and stored (usage-level.ts). The same happens after a change of
// quotas, because a command that sets them may not know the defaults and the mail server of the nodes.
import { createOutageReporter, type OutageEvents } from '../../../lib/outage.ts'
import { listReached } from '../../store/quotas.ts'
import type { ChangeFollower } from '../../verification/change-follower.ts'
import type { Services } from '../context.ts'
import { monthRange } from './limits.ts'
import { createUsageEstimator } from './usage-estimator.ts'
import { updateLevel } from './usage-level.ts'

/** The time from the first report to the check, so that one check serves the reports of many edges. */
const CHECK_DELAY_MS = 500
/**
 * How often some workspaces that have reached a quota are checked: they have no reports, but the default may
 * have been raised or usage deleted. Workspaces with a level of a later month are checked too: a clock was
 * ahead, and the quota of this month is not enforced.
 */
const REACHED_INTERVAL_MS = 15_000
const REACHED_MAX = 500

interface QuotaWatch {
  /** Call it with the counters of a committed report. */
  noteReport(counters: Iterable<{ workspaceId: string }>): void
  stop(): Promise<void>
}

interface QuotaWatchOptions extends OutageEvents {
  follower: Pick<ChangeFollower, 'subscribe'>
}

export function startQuotaWatch(services: Services, options: QuotaWatchOptions): QuotaWatch {
  const { follower } = options
  const estimator = createUsageEstimator(services, follower)
  let pendingIds = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> | undefined
  let isStopped = false
  const outages = createOutageReporter(options, () => isStopped)

  const { unsubscribe } = follower.subscribe({
    onChange({ kind, subjectId }) {
      if (kind === 'workspace-quota') add([subjectId])
    },
    onReset() {},
  })

  function add(ids: Iterable<string>): void {
    for (const id of ids) pendingIds.add(id)
    if (isStopped || timer || running || pendingIds.size === 0) return
    timer = setTimeout(() => {
      timer = undefined
      const batch = pendingIds
      pendingIds = new Set()
      let unchecked: readonly string[] = [...batch]
      const check = run(unchecked, (ids) => {
        unchecked = ids
      })
      running = outages.observe(check).then(() => {
        running = undefined
        add(unchecked)
      })
    }, CHECK_DELAY_MS).unref()
  }

  /** Rejects with one of the failures. */
  async function run(ids: readonly string[], onUnchecked: (ids: readonly string[]) => void): Promise<void> {
    const estimates = await estimator.estimate(ids)
    let { failure } = estimates
    const failedIds = await updateLevels(estimates.changed, (error) => {
      failure = error
    })
    onUnchecked([...estimates.missing, ...failedIds])
    if (failure !== undefined) throw failure
  }

  /** Returns the workspaces that failed, because one must not block others. */
  async function updateLevels(ids: readonly string[], onError: (error: unknown) => void): Promise<string[]> {
    const failedIds: string[] = []
    for (const id of ids) {
      try {
        await updateLevel(services, id)
        estimator.confirm(id)
      } catch (error) {
        onError(error)
        failedIds.push(id)
      }
    }
    return failedIds
  }

  /** The last workspace of the previous check. */
  let after = ''
  async function checkReached(): Promise<void> {
    try {
      const now = services.clock()
      const { until: monthEnd } = monthRange(now)
      const ids = await listReached(services.store.db, { now, monthEnd, after, limit: REACHED_MAX })
      after = ids.length < REACHED_MAX ? '' : (ids.at(-1) ?? '')
      for (const id of ids) estimator.invalidate(id)
      add(ids)
    } catch {
      // The database does not respond; the next check tries again.
    }
  }
  const reachedTimer = setInterval(checkReached, REACHED_INTERVAL_MS).unref()

  return {
    noteReport: (counters) => add(Iterator.from(counters).map(({ workspaceId }) => workspaceId)),
    async stop() {
      isStopped = true
      clearTimeout(timer)
      clearInterval(reachedTimer)
      unsubscribe()
      estimator.stop()
      await running
    },
  }
}
