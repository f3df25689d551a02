// The maintenance job of the server. Every node polls for it; the one that gets the lease runs it. A node that
// dies during a run is replaced when its lease expires.
import { setTimeout as delay } from 'node:timers/promises'
import { type MaintenanceState, readMaintenance, takeLease, updateLease } from '../store/maintenance.ts'
import type { Services } from './context.ts'
import { deletePastRetention, previewRetention, type RetentionSettings } from './retention.ts'
import { isoOrNull } from './timestamps.ts'

const LEASE_MS = 60_000
const RENEW_INTERVAL_MS = 15_000
/** From the end of a run to the next one, on any node. */
const RUN_INTERVAL_MS = 5 * 60_000
/** How often a node looks whether a run is due. */
const POLL_INTERVAL_MS = 60_000
const STOP_TIMEOUT_MS = 1_000
/** Long runs log what they have deleted so far. */
const LOG_INTERVAL_MS = 60_000

/** Rows by table, without zeros. */
export type Deleted = Record<string, number>

export interface MaintenanceEvents {
  onDeleted: (rows: Deleted) => void
  /** The first failure of several in a row. */
  onFailure: (error: unknown) => void
  onRecovery: () => void
}

export interface MaintenanceOptions {
  /** Of the node; unique. */
  id: string
  settings: RetentionSettings
  events: MaintenanceEvents
  pollIntervalMs?: number
}

export interface Maintenance {
  /** Ends a run after its current batch, so that another node can continue it. */
  stop(): Promise<void>
}

export function startMaintenance(services: Services, options: MaintenanceOptions): Maintenance {
  const { id, settings, events, pollIntervalMs = POLL_INTERVAL_MS } = options
  const stopping = new AbortController()
  const { signal } = stopping
  let isFailing = false

  async function poll(): Promise<void> {
    const log = collectDeleted(events.onDeleted)
    try {
      await runAsOwner(services, { id, settings, signal, onDeleted: log.add })
      if (isFailing) events.onRecovery()
      isFailing = false
    } catch (error) {
      if (!isFailing && !signal.aborted) events.onFailure(error)
      isFailing = true
    } finally {
      log.flush()
    }
  }

  async function pollUntilStopped(): Promise<void> {
    while (!signal.aborted) {
      // Random, so that nodes that were started together do not all look at the same moment.
      await sleep(pollIntervalMs * (0.5 + Math.random() / 2), signal, false)
      if (!signal.aborted) await poll()
    }
  }

  const ended = pollUntilStopped()
  return {
    async stop() {
      stopping.abort()
      // A database that does not respond must not delay the shutdown.
      await Promise.race([ended, delay(STOP_TIMEOUT_MS, undefined, { ref: false })])
    },
  }
}

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
  settings: RetentionSettings
  signal: AbortSignal
  onDeleted: (table: string, rows: number) => void
  onWait?: (ms: number) => void
  /** Run even if the last run was a moment ago. */
  now?: boolean
}

/** Runs the job if this owner gets the lease. Returns false if it does not. */
async function runAsOwner(services: Services, options: RunOptions): Promise<boolean> {
  const { id: owner, settings, signal, onDeleted, onWait = () => {}, now = false } = options
  const { store } = services
  const state = await takeLease(store, { owner, leaseMs: LEASE_MS, now })
  if (!state) return false
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
    if (await deletePastRetention(run, settings)) dueInMs = RUN_INTERVAL_MS
  } catch (error) {
    dueInMs = POLL_INTERVAL_MS
    throw error
  } finally {
    // Without a database the lease expires by itself.
    await updateLease(store, { owner, dueInMs, release: true, usageCursor: run.usageCursor }).catch(() => {})
  }
  return true
}

async function sleep(ms: number, signal: AbortSignal, ref = true): Promise<void> {
  await delay(ms, undefined, { signal, ref }).catch(() => {})
}

/** Runs the job now, for the operator. Returns the owner of a run that is in progress instead, if there is one. */
export async function runNow(services: Services, options: Omit<RunOptions, 'id' | 'now'>) {
  const id = services.ids('node')
  if (await runAsOwner(services, { ...options, id, now: true })) return undefined
  return (await readMaintenance(services.store)).owner
}

/** What a run would delete now. */
export async function previewNow(services: Services, settings: RetentionSettings) {
  const state: MaintenanceState = await readMaintenance(services.store)
  const previews = await previewRetention(services, settings, state)
  return Object.entries(previews).map(([table, { rows, oldest }]) => ({
    table,
    rows,
    oldest: isoOrNull(oldest),
  }))
}
