// The usage meter of an edge. It counts in memory, writes what is not reported yet to disk every second, and reports it
// every few. Totals run on within an epoch, so whatever is sent twice, late or not at all counts once.
import { randomUUID } from 'node:crypto'
import type { ControlPlane, Receipt, Report } from './control-plane.ts'
import { createOutage } from './outage.ts'
import { openSpool } from './spool.ts'
import { type Batch, createTally, type Tally, type Transfer } from './tally.ts'

export type { Transfer }

const SPOOL_EVERY_MS = 1_000

export interface Meter extends Pick<Tally, 'opened' | 'closed' | 'refused' | 'transferred'> {
  /** Writes and reports what is left. What the control plane does not take stays on disk for the next run. */
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
  { folder, onNotice = () => {}, reportEveryMs = 5_000, itemsMax = 50_000, clock = Date.now }: MeterOptions,
): Promise<Meter> {
  const epoch = randomUUID()
  const spool = await openSpool(folder, epoch, onNotice)
  const tally = createTally(clock, itemsMax)
  const diskOutage = createOutage(onNotice, `Usage is written to ${folder} again.`)
  const reportOutage = createOutage(onNotice, 'Usage is reported again.')
  const refusal = createOutage(onNotice, 'The control plane takes all usage again.')
  const fullness = createOutage(onNotice, 'All usage is counted again.')
  const withEpoch = ({ report }: Batch): Report => ({ epoch, ...report })
  let lostBefore = 0
  let writing: Promise<unknown> = Promise.resolve()

  /** Writes down all that is not acknowledged, and hands it over for sending. One after another: the newest must stay. */
  function keep(): Promise<Batch[]> {
    const kept = writing.then(async () => {
      tally.tick()
      const batches = tally.unsent()
      try {
        await spool.write(batches.map(withEpoch))
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

  async function report(): Promise<void> {
    try {
      for await (const { reports, discard } of spool.leftovers()) {
        const receipts = []
        for (const left of reports) receipts.push(await send(left))
        // Ahead of the control plane's clock: its time will come.
        const isEarly = receipts.some(({ refused }) => refused.some(({ reason }) => reason === 'in_future'))
        if (!isEarly) await discard()
      }
      const batches = await keep()
      for (const batch of batches) batch.acknowledge(await send(withEpoch(batch)))
      if (batches.length > 0) await keep()
      reportOutage.end()
    } catch (error) {
      reportOutage.begin(`Usage cannot be reported and waits in ${folder}: ${(error as Error).message}`)
    }
    if (tally.lost() > lostBefore)
      fullness.begin('Too much usage waits to be reported: what further workspaces use is not counted.')
    else fullness.end()
    lostBefore = tally.lost()
  }

  async function send(one: Report): Promise<Receipt> {
    const receipt = await controlPlane.report(one)
    const reasons = [...Map.groupBy(receipt.refused, ({ reason }) => reason)]
    const list = reasons.map(([reason, items]) => `${items.length} × ${reason}`).join(', ')
    if (list) refusal.begin(`The control plane refused part of a usage report: ${list}.`)
    else refusal.end()
    return receipt
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
      await reporting
      await reportOnce()
    },
  }
}
