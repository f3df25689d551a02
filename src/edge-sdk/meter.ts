// The usage meter of an edge. It counts in memory, writes what is not reported yet to disk every second, and reports it
// every few. Totals run on within an epoch, so whatever is sent twice, late or not at all counts once.
import { randomUUID } from 'node:crypto'
import { type ControlPlane, ControlPlaneError, type Receipt, type Report } from './control-plane.ts'
import { createNoticeOnce } from './notice-once.ts'
import { remainderOf } from './refusals.ts'
import { safeCallback } from './safe-callback.ts'
import { type Leftover, openSpool } from './spool.ts'
import { type Batch, createUsageCounters, type Transfer, type UsageCounters } from './usage-counters.ts'

export type { Transfer }

const SPOOL_EVERY_MS = 1_000
const STOP_WITHIN_MS = 5_000

export interface Meter extends Pick<UsageCounters, 'opened' | 'closed' | 'refused' | 'transferred'> {
  /** Writes what is left and tries to report it. What is not taken within seconds stays on disk for the next run. */
  stop(): Promise<void>
}

export interface MeterOptions {
  /** Where to keep what is not reported yet: a folder of this edge's own. */
  folder: string
  /** A line for the log: that usage cannot be written or reported, or is refused. */
  onNotice?: (line: string) => void
  reportEveryMs?: number
  /** How much may wait to be reported, in totals and minutes of a workspace. */
  itemsMax?: number
  /** Milliseconds since 1970. */
  clock?: () => number
}

/** Throws where the folder cannot be written to: an edge that could not keep its counts should not begin to count. */
export async function startMeter(
  controlPlane: ControlPlane,
  { folder, reportEveryMs = 5_000, itemsMax = 50_000, clock = Date.now, ...callbacks }: MeterOptions,
): Promise<Meter> {
  const onNotice = safeCallback(callbacks.onNotice)
  const run = randomUUID()
  const spool = await openSpool(folder, run, onNotice)
  const tally = createUsageCounters(run, clock, itemsMax)
  const diskOutage = createNoticeOnce(onNotice, `Usage is written to ${folder} again.`)
  const reportOutage = createNoticeOnce(onNotice, 'Usage is reported again.')
  const refusal = createNoticeOnce(onNotice, 'The control plane takes all usage again.')
  const fullness = createNoticeOnce(onNotice, 'All usage is counted again.')
  let lostBefore = 0
  let writing: Promise<unknown> = Promise.resolve()

  /** Writes down all that is not acknowledged, and hands it over for sending. One after another: the newest must stay. */
  function keep(): Promise<Batch[]> {
    const kept = writing.then(async () => {
      tally.tick()
      const batches = tally.unsent()
      try {
        await spool.write(batches.map(({ report }) => report))
        diskOutage.end()
      } catch (error) {
        // Sent all the same: a full disk is no reason to lose more.
        diskOutage.begin(`Usage cannot be written to ${folder}: ${(error as Error).message}`)
      }
      return batches
    })
    writing = kept
    return kept
  }

  /** What does not get through does not hold up what comes after it. */
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
    const batches = await keep()
    for (const { report, acknowledge } of batches)
      await send(report).then(acknowledge, (error) => failures.push(error))
    if (batches.length > 0) await keep()
    try {
      for await (const leftover of spool.leftovers()) await sendLeftover(leftover, send)
    } catch (error) {
      failures.push(error)
    }
    tell({ sent, refused, failures })
  }

  async function sendLeftover(
    { reports, discard, keepOnly, setAside }: Leftover,
    send: (report: Report) => Promise<Receipt>,
  ): Promise<void> {
    try {
      const remaining = []
      for (const report of reports) remaining.push(remainderOf(report, await send(report)) ?? [])
      if (remaining.flat().length === 0) await discard()
      else await keepOnly(remaining.flat())
    } catch (error) {
      if (!(error instanceof ControlPlaneError && error.status === 400)) throw error
      await setAside(error.message)
    }
  }

  function tell({
    sent,
    refused,
    failures,
  }: {
    sent: number
    refused: Receipt['refused']
    failures: unknown[]
  }) {
    const [failure] = failures
    if (failure === undefined) reportOutage.end()
    else reportOutage.begin(`Usage cannot be reported and waits in ${folder}: ${(failure as Error).message}`)
    const reasons = [...new Set(refused.map(({ reason }) => reason))].sort().join(', ')
    if (reasons) refusal.begin(`The control plane refuses part of the usage: ${reasons}.`)
    else if (sent > 0 && failure === undefined) refusal.end()
    if (tally.lost() > lostBefore)
      fullness.begin('Too much usage waits to be reported: what further workspaces use is not counted.')
    else fullness.end()
    lostBefore = tally.lost()
  }

  let reporting: Promise<void> | undefined
  /** One at a time; a report that takes long is not joined by another. */
  function reportOnce(): Promise<void> {
    reporting ??= report().finally(() => {
      reporting = undefined
    })
    return reporting
  }

  const timers = [setInterval(keep, SPOOL_EVERY_MS), setInterval(reportOnce, reportEveryMs)]
  for (const timer of timers) timer.unref()
  void reportOnce()

  return {
    opened: tally.opened,
    closed: tally.closed,
    refused: tally.refused,
    transferred: tally.transferred,
    async stop() {
      for (const timer of timers) clearInterval(timer)
      await keep()
      const last = (async () => {
        await reporting
        await reportOnce()
      })()
      let patience: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        patience = setTimeout(resolve, STOP_WITHIN_MS)
      })
      await Promise.race([last, late])
      clearTimeout(patience)
    },
  }
}
