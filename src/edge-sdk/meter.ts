// The usage meter of an edge. It counts in memory, spools unreported usage to disk every second, and reports
// it every few seconds. Totals are cumulative within an epoch, so a report that is repeated, late or lost
// never counts twice.
import { randomUUID } from 'node:crypto'
import { type ControlPlane, ControlPlaneError, type Receipt, type Report } from './control-plane.ts'
import { createNoticeOnce } from './notice-once.ts'
import { remainderOf } from './rejected-items.ts'
import { safeCallback } from './safe-callback.ts'
import { openSpool, type SpoolFile } from './spool.ts'
import type { Batch } from './usage-batches.ts'
import { createUsageCounters, type Transfer, type UsageCounters } from './usage-counters.ts'

export type { Transfer }

const SPOOL_INTERVAL_MS = 1_000
const STOP_TIMEOUT_MS = 5_000

export interface Meter extends Pick<UsageCounters, 'opened' | 'closed' | 'refused' | 'transferred'> {
  /**
   * Spools and reports the rest. Usage that is not accepted within 5 seconds stays on disk for the next run.
   */
  stop(): Promise<void>
}

export interface MeterOptions {
  /** Folder for the spool of unreported usage. Edges must not share it. */
  folder: string
  /** Called with a line for the log when usage cannot be spooled or reported, or is rejected. */
  onNotice?: (line: string) => void
  /** Interval between reports; 5,000 by default. */
  reportEveryMs?: number
  /** Limit of unreported items (totals and minutes per workspace); 50,000 by default. */
  itemsMax?: number
  /** Milliseconds since 1970; `Date.now` by default. */
  clock?: () => number
}

/** Rejects if the folder is not writable: an edge that cannot spool its usage should not start. */
export async function startMeter(
  controlPlane: ControlPlane,
  { folder, reportEveryMs = 5_000, itemsMax = 50_000, clock = Date.now, ...callbacks }: MeterOptions,
): Promise<Meter> {
  const onNotice = safeCallback(callbacks.onNotice)
  const run = randomUUID()
  const spool = await openSpool(folder, run, onNotice)
  const counters = createUsageCounters(run, clock, itemsMax)
  const notices = createNotices(onNotice, folder)
  let writing: Promise<unknown> = Promise.resolve()

  /**
   * Spools everything that is not acknowledged and returns it. Serialized, so that the newest state is
   * written last.
   */
  function spoolUnsent(): Promise<Batch[]> {
    const spooled = writing.then(async () => {
      counters.tick()
      const batches = counters.unsent()
      try {
        await spool.write(batches.map(({ report }) => report))
        notices.disk.end()
      } catch (error) {
        // Reported nevertheless, so that a full disk does not lose usage.
        notices.disk.begin(`Failed to write usage to ${folder}: ${(error as Error).message}`)
      }
      return batches
    })
    writing = spooled
    return spooled
  }

  /** A batch that fails does not block the batches after it. */
  async function report(): Promise<void> {
    const refused: Receipt['refused'] = []
    const failures: unknown[] = []
    let sent = 0
    const send = async (one: Report) => {
      sent += 1
      const receipt = await controlPlane.report(one)
      refused.push(...receipt.refused)
      return receipt
    }
    const batches = await spoolUnsent()
    for (const { report, acknowledge } of batches)
      await send(report).then(acknowledge, (error) => failures.push(error))
    if (batches.length > 0) await spoolUnsent()
    try {
      for await (const file of spool.earlierFiles()) await sendFile(file, send)
    } catch (error) {
      failures.push(error)
    }
    notices.update({ sent, refused, failures, lost: counters.lost() })
  }

  let reporting: Promise<void> | undefined
  /** One report at a time: while one is in flight, others join it. */
  function reportOnce(): Promise<void> {
    reporting ??= report().finally(() => {
      reporting = undefined
    })
    return reporting
  }

  const timers = [setInterval(spoolUnsent, SPOOL_INTERVAL_MS), setInterval(reportOnce, reportEveryMs)]
  for (const timer of timers) timer.unref()
  void reportOnce()

  return {
    opened: counters.opened,
    closed: counters.closed,
    refused: counters.refused,
    transferred: counters.transferred,
    async stop() {
      for (const timer of timers) clearInterval(timer)
      await spoolUnsent()
      const lastReport = (async () => {
        await reporting
        await reportOnce()
      })()
      const timeout = Promise.withResolvers<void>()
      const timer = setTimeout(timeout.resolve, STOP_TIMEOUT_MS)
      await Promise.race([lastReport, timeout.promise])
      clearTimeout(timer)
    },
  }
}

async function sendFile(
  { reports, discard, keepOnly, quarantine }: SpoolFile,
  send: (report: Report) => Promise<Receipt>,
): Promise<void> {
  try {
    const remaining = []
    for (const report of reports) remaining.push(remainderOf(report, await send(report)) ?? [])
    if (remaining.flat().length === 0) await discard()
    else await keepOnly(remaining.flat())
  } catch (error) {
    if (!(error instanceof ControlPlaneError && error.status === 400)) throw error
    await quarantine(error.message)
  }
}

interface ReportResult {
  sent: number
  refused: Receipt['refused']
  failures: unknown[]
  /** How many times usage was not counted, since the start. */
  lost: number
}

function createNotices(onNotice: (line: string) => void, folder: string) {
  const disk = createNoticeOnce(onNotice, `Writing usage to ${folder} again.`)
  const outage = createNoticeOnce(onNotice, 'Reporting usage again.')
  const rejection = createNoticeOnce(onNotice, 'The control plane accepts all usage again.')
  const limit = createNoticeOnce(onNotice, 'Counting all usage again.')
  let lostBefore = 0
  return {
    disk,
    update({ sent, refused, failures, lost }: ReportResult) {
      const [failure] = failures
      if (failure === undefined) outage.end()
      else outage.begin(`Failed to report usage, kept in ${folder}: ${(failure as Error).message}`)
      const reasons = [...new Set(refused.map(({ reason }) => reason))].sort().join(', ')
      if (reasons) rejection.begin(`The control plane rejected part of the usage: ${reasons}.`)
      else if (sent > 0 && failure === undefined) rejection.end()
      if (lost > lostBefore)
        limit.begin('Too much unreported usage: usage of further workspaces is not counted.')
      else limit.end()
      lostBefore = lost
    },
  }
}
