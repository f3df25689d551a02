// The usage meter of an edge. It counts in memory, spools unreported usage to disk every second, and reports
// it every few seconds, or as rarely as the control plane asks. Totals are cumulative within an epoch, so a
// report that is repeated, late or lost never counts twice.
import { randomUUID } from 'node:crypto'
import type { Receipt, Report, UsageQuota } from '../api.ts'
import { type ControlPlane, ControlPlaneError } from '../control-plane.ts'
import { safeCallback } from '../safe-callback.ts'
import type { ReportBatch } from './batches.ts'
import { createUsageCounters, type UsageCounters } from './counters.ts'
import { createNotices } from './meter-notices.ts'
import { UsageQuotas } from './quotas.ts'
import { retryableItems } from './rejected-items.ts'
import { reportDelayMs } from './report-delay.ts'
import { openSpool, type SpoolFile } from './spool.ts'

const SPOOL_INTERVAL_MS = 1_000
const STOP_TIMEOUT_MS = 5_000
/** Wait after a failed report near a quota. */
const URGENT_RETRY_MS = 5_000

export interface Meter
  extends Pick<UsageCounters, 'opened' | 'closed' | 'count' | 'rejected' | 'transferred'> {
  /** Size of the usage on disk that the control plane has not accepted yet. */
  spoolBytes(): number
  /** Usage of a workspace that is near its quota is reported more often. */
  setQuota(workspace: string, quota: UsageQuota): void
  /**
   * Spools and reports the rest. Usage that is not accepted within 5 seconds stays on disk for the next run.
   */
  stop(): Promise<void>
}

export interface MeterOptions {
  /** Folder for the spool of unreported usage. It is locked: running edges cannot share it. */
  folder: string
  /** Called with a line for the log when usage cannot be spooled or reported, or is rejected. */
  onNotice?: (line: string) => void
  /** Interval between reports; 5,000 by default. */
  reportEveryMs?: number
  /** Limit of unreported items (totals and minutes per workspace); 50,000 by default. */
  itemsMax?: number
  /** Milliseconds since 1970; `Date.now` by default. */
  clock?: () => number
  /** Asked before open tunnels are recorded: for edges with a lease, `mayCount` of the tunnel reporter. */
  mayCount?: () => boolean
}

/** Rejects if the folder is not writable or in use: an edge that cannot spool its usage should not start. */
export async function startMeter(controlPlane: ControlPlane, options: MeterOptions): Promise<Meter> {
  const {
    folder,
    reportEveryMs = 5_000,
    itemsMax = 50_000,
    clock = Date.now,
    mayCount = () => true,
  } = options
  const onNotice = safeCallback(options.onNotice)
  const run = randomUUID()
  const owner = controlPlane.credentialFingerprint
  const spool = await openSpool(folder, { epoch: run, owner, onNotice })
  const counters = createUsageCounters({ run, clock, itemsMax, mayCount })
  const notices = createNotices(onNotice, folder)
  let writing: Promise<unknown> = Promise.resolve()
  const quotas = new UsageQuotas(itemsMax)
  /** The longest `Retry-After` of the last round of reports. */
  let retryAfterS = 0

  /** Spools and returns unreported usage. Writes are serialized, so that the newest state comes last. */
  function spoolUnreported(): Promise<ReportBatch[]> {
    const spooled = writing.then(async () => {
      counters.tick()
      const batches = counters.unreported()
      try {
        await spool.write(batches.map(({ report }) => report))
        notices.disk.end()
      } catch (error) {
        // The batches are still reported, so that a full disk loses no usage.
        notices.disk.begin(`Failed to write usage to ${folder}: ${(error as Error).message}`)
      }
      return batches
    })
    writing = spooled
    return spooled
  }

  /** A batch that fails does not block the batches after it. */
  async function report(): Promise<void> {
    const rejected: Receipt['rejected'] = []
    const failures: unknown[] = []
    let sent = 0
    retryAfterS = 0
    const send = async (usage: Report) => {
      sent += 1
      try {
        const receipt = await controlPlane.report(usage)
        rejected.push(...receipt.rejected)
        return receipt
      } catch (error) {
        if (error instanceof ControlPlaneError) retryAfterS = Math.max(retryAfterS, error.retryAfterS ?? 0)
        throw error
      }
    }
    const batches = await spoolUnreported()
    for (const { report, acknowledge } of batches)
      await send(report).then(acknowledge, (error) => failures.push(error))
    if (batches.length > 0) await spoolUnreported()
    try {
      for await (const file of spool.earlierFiles()) await sendFile(file, send)
    } catch (error) {
      failures.push(error)
    }
    notices.update({ sent, rejected, failures, lost: counters.lost() })
  }

  /** Reports workspaces near their quota, for which the next regular report would be too late. */
  async function reportUrgent(): Promise<void> {
    const batches = counters.unreportedIf((workspace, unreported) =>
      quotas.isUrgent(workspace, unreported, clock()),
    )
    for (const { report, acknowledge } of batches)
      await controlPlane.report(report).then(acknowledge, () => {
        urgentAfter = performance.now() + URGENT_RETRY_MS
      })
  }

  let reporting: Promise<void> | undefined
  let urgent: Promise<void> | undefined
  let urgentAfter = 0
  /** Joins a report that is in flight. */
  function reportOnce(): Promise<void> {
    reporting ??= (async () => {
      await urgent
      await report()
    })().finally(() => {
      reporting = undefined
    })
    return reporting
  }

  async function tick(): Promise<void> {
    await spoolUnreported()
    if (isStopped || reporting || urgent || performance.now() < urgentAfter) return
    urgent = reportUrgent().finally(() => {
      urgent = undefined
    })
  }
  const spoolTimer = setInterval(tick, SPOOL_INTERVAL_MS).unref()
  let reportTimer: NodeJS.Timeout | undefined
  let isStopped = false
  async function reportRepeatedly(): Promise<void> {
    await reportOnce()
    if (!isStopped)
      reportTimer = setTimeout(reportRepeatedly, reportDelayMs(reportEveryMs, retryAfterS)).unref()
  }
  void reportRepeatedly()

  return {
    opened: counters.opened,
    closed: counters.closed,
    count: counters.count,
    rejected: counters.rejected,
    transferred: counters.transferred,
    spoolBytes: spool.bytes,
    setQuota: (workspace, quota) => quotas.set(workspace, quota),
    async stop() {
      isStopped = true
      clearInterval(spoolTimer)
      clearTimeout(reportTimer)
      await spoolUnreported()
      const lastReport = (async () => {
        await reporting
        await reportOnce()
      })()
      const timeout = Promise.withResolvers<void>()
      const timer = setTimeout(timeout.resolve, STOP_TIMEOUT_MS)
      await Promise.race([lastReport, timeout.promise])
      clearTimeout(timer)
      await spool.close()
    },
  }
}

async function sendFile(
  { reports, discard, keepOnly, quarantine }: SpoolFile,
  send: (report: Report) => Promise<Receipt>,
): Promise<void> {
  try {
    const remaining = []
    for (const report of reports) remaining.push(retryableItems(report, await send(report)) ?? [])
    if (remaining.flat().length === 0) await discard()
    else await keepOnly(remaining.flat())
  } catch (error) {
    if (!(error instanceof ControlPlaneError && error.status === 400)) throw error
    await quarantine(error.message)
  }
}
