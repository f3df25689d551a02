// Periodic work of nodes. Every node creates alerts, sends emails, and moves the counting of names away from
// edges that are gone. Every node also checks whether a run of
// the maintenance job is due, and the one that acquires the lease runs it. If that node is killed, another
// one acquires the lease when it has expired.
import { setTimeout as delay } from 'node:timers/promises'
import { createOutageReporter, type OutageEvents } from '../../../lib/outage.ts'
import {
  acquireLease,
  type MaintenanceState,
  readMaintenance,
  updateLease,
} from '../../store/maintenance/state.ts'
import type { Services } from '../context.ts'
import type { Run } from '../deletion-batches.ts'
import { RECENTLY_MS, recordExpiredKeys, SINCE_MAX_MS } from '../keys/expired.ts'
import type { KeyRejections } from '../keys/rejections.ts'
import { alertSilentEdges } from '../notices/edge-alerts.ts'
import { createNotices } from '../notices/key-notices.ts'
import { type NoticeMailOptions, sendNoticeMails } from '../notices/mails.ts'
import { isoOrNull } from '../timestamps.ts'
import { moveCountsOfLostEdges } from '../tunnels/counts.ts'
import { alertScarcePorts, type PortUse } from '../tunnels/operator-ports.ts'
import { deletePastRetention, previewRetention } from './retention.ts'

const LEASE_MS = 60_000
const RENEW_INTERVAL_MS = 15_000
/** The time from the end of a run to the next one, on any node. */
const RUN_INTERVAL_MS = 5 * 60_000
/** How often a node checks whether a run is due. */
const POLL_INTERVAL_MS = 60_000
const STOP_TIMEOUT_MS = 1_000
/** Long runs log what they have deleted so far. */
const LOG_INTERVAL_MS = 60_000

/** Numbers of deleted rows by table, without zeros. */
export type Deleted = Record<string, number>

interface MaintenanceEvents extends OutageEvents {
  onDeleted: (rows: Deleted) => void
  /** Called on one node, once per outage, if an edge has not reported for 5 minutes. */
  onSilentEdge?: (edge: { id: string; name: string }) => void
  /** Called on one node, once a month, if 80 % of the ports of TCP tunnels are assigned. */
  onScarcePorts?: (use: PortUse) => void
}

interface MaintenanceOptions {
  /** The unique id of the node, which is the owner in the lease. */
  id: string
  events: MaintenanceEvents
  /** Undefined without a mail server; then notices are only in the dashboard. */
  mail: NoticeMailOptions | undefined
  /** Rejections that this node has counted. */
  rejections?: KeyRejections | undefined
  /** For how long the database has been available to this node. */
  databaseUpForMs: () => number
  pollIntervalMs?: number
}

interface Maintenance {
  /** Stops the run after its current batch, and releases the lease so that another node can continue. */
  stop(): Promise<void>
}

export function startMaintenance(services: Services, options: MaintenanceOptions): Maintenance {
  const { id, events, mail, pollIntervalMs = POLL_INTERVAL_MS } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const alertRun = {
    services,
    proceed: async () => !signal.aborted,
    sleep: (ms: number) => sleep(ms, signal),
  }

  async function runJob(): Promise<void> {
    const log = collectDeleted(events.onDeleted)
    const before = (run: Run) => runNotices(run, { withMail: mail !== undefined })
    await runAsOwner(services, { id, signal, onDeleted: log.add, before }).finally(log.flush)
  }

  async function pollUntilStopped(task: () => Promise<void>): Promise<void> {
    const outages = createOutageReporter(events, () => signal.aborted)
    while (!signal.aborted) {
      // Jitter, so that nodes that were started together do not poll simultaneously.
      await sleep(pollIntervalMs * (0.5 + Math.random() / 2), signal, false)
      if (signal.aborted) return
      await outages.observe(task())
    }
  }

  // A run of the job may take long, and must not delay the other tasks.
  const loops = Promise.all([
    pollUntilStopped(() => runAlerts(alertRun, options)),
    pollUntilStopped(() => moveCountsOfLostEdges(alertRun)),
    pollUntilStopped(runJob),
  ])
  return {
    async stop() {
      stopping.abort()
      // A database that does not respond must not delay the shutdown.
      await Promise.race([loops, delay(STOP_TIMEOUT_MS, undefined, { ref: false })])
    },
  }
}

type AlertOptions = Pick<MaintenanceOptions, 'mail' | 'rejections' | 'databaseUpForMs'> & {
  events: Pick<MaintenanceEvents, 'onSilentEdge' | 'onScarcePorts'>
}

/** Runs on every node, without the lease: each alert and email is created or sent only once anyway. */
export const runAlerts = (
  run: Pick<Run, 'services' | 'proceed' | 'sleep'>,
  { mail, rejections, databaseUpForMs, events }: AlertOptions,
): Promise<void> =>
  runEach([
    async () => rejections?.flush(run.services),
    () =>
      alertSilentEdges(run, {
        withMail: mail?.operator !== undefined,
        databaseUpForMs,
        onSilent: (edge) => events.onSilentEdge?.(edge),
      }),
    () =>
      alertScarcePorts(run.services, {
        withMail: mail?.operator !== undefined,
        onScarce: (use) => events.onScarcePorts?.(use),
      }),
    () => recordExpiredKeys(run, RECENTLY_MS),
    async () => mail && sendNoticeMails(run, mail),
  ])

/** Runs tasks one after the other, even if one fails. Throws the first failure at the end. */
async function runEach(tasks: readonly (() => Promise<unknown>)[]): Promise<void> {
  const failures: unknown[] = []
  for (const task of tasks)
    try {
      await task()
    } catch (error) {
      failures.push(error)
    }
  if (failures.length > 0) throw failures[0]
}

/** Returns false if the run was stopped before the end. */
export const runNotices = async (run: Run, { withMail }: { withMail: boolean }): Promise<boolean> =>
  (await recordExpiredKeys(run, SINCE_MAX_MS)) && (await createNotices(run, { withMail }))

/** Sums up deleted rows for the log. */
function collectDeleted(onDeleted: (rows: Deleted) => void) {
  let rows: Deleted = {}
  let loggedAt = performance.now()
  function flush(): void {
    if (Object.keys(rows).length > 0) onDeleted(rows)
    rows = {}
    loggedAt = performance.now()
  }
  return {
    flush,
    add(table: string, count: number): void {
      if (count > 0) rows[table] = (rows[table] ?? 0) + count
      if (performance.now() - loggedAt > LOG_INTERVAL_MS) flush()
    },
  }
}

interface RunOptions {
  id: string
  signal: AbortSignal
  onDeleted: (table: string, rows: number) => void
  onWait?: (ms: number) => void
  /** Called before anything is deleted. */
  onStart?: () => Promise<void>
  /** Other work, done first because deletions may fail. Returns false if it was stopped. */
  before?: (run: Run) => Promise<boolean>
  /** Run even if no run is due. */
  force?: boolean
}

/**
 * Runs the job if the lease can be acquired. `stopped` by the signal, or because another owner has the lease
 * now. `busy` if another owner had the lease or no run was due.
 */
async function runAsOwner(
  services: Services,
  options: RunOptions,
): Promise<'completed' | 'stopped' | 'busy'> {
  const { id: owner, signal, onDeleted, onWait = () => {}, force = false } = options
  const { store } = services
  const state = await acquireLease(store, { owner, leaseMs: LEASE_MS, force })
  if (!state) return 'busy'
  let renewedAt = performance.now()
  const run = {
    services,
    state,
    usageCursor: state.usageCursor,
    onDeleted,
    onWait,
    sleep: (ms: number) => sleep(ms, signal),
    async proceed() {
      if (signal.aborted) return false
      if (performance.now() - renewedAt < RENEW_INTERVAL_MS) return true
      renewedAt = performance.now()
      return updateLease(store, { owner, dueInMs: LEASE_MS, usageCursor: run.usageCursor })
    },
  }
  let dueInMs = 0
  try {
    await options.onStart?.()
    if (options.before && !(await options.before(run))) return 'stopped'
    if (!(await deletePastRetention(run))) return 'stopped'
    dueInMs = RUN_INTERVAL_MS
    return 'completed'
  } catch (error) {
    dueInMs = POLL_INTERVAL_MS
    throw error
  } finally {
    // Without a database the lease expires by itself.
    await updateLease(store, { owner, dueInMs, release: true, usageCursor: run.usageCursor }).catch(() => {})
  }
}

async function sleep(ms: number, signal: AbortSignal, ref = true): Promise<void> {
  await delay(ms, undefined, { signal, ref }).catch(() => {})
}

export type RunNowResult = { outcome: 'completed' | 'stopped' } | { outcome: 'busy'; owner: string }

/** Runs the job for the operator, even if no run is due. If it is `busy`, `owner` is running it. */
export async function runNow(
  services: Services,
  options: Omit<RunOptions, 'id' | 'force'>,
): Promise<RunNowResult> {
  const id = services.ids('node')
  for (;;) {
    const outcome = await runAsOwner(services, { ...options, id, force: true })
    if (outcome !== 'busy') return { outcome }
    const { owner } = await readMaintenance(services.store)
    // Without an owner, the other run has ended, so try again.
    if (owner !== '') return { outcome, owner }
  }
}

/** Counts the rows that a run would delete now. */
export async function previewNow(services: Services) {
  const state: MaintenanceState = await readMaintenance(services.store)
  const previews = await previewRetention(services, state)
  return Object.entries(previews).map(([table, { rows, oldest }]) => ({
    table,
    rows,
    oldest: isoOrNull(oldest),
  }))
}
