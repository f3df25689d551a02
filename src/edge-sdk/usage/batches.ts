// Snapshots of unacknowledged usage, as reports within the limits of the control plane.
import type { Receipt, Report } from '../control-plane.ts'
import { isTemporary } from './rejected-items.ts'

export type CounterItem = NonNullable<Report['counters']>[number]
export type MinuteItem = NonNullable<Report['tunnels']>[number]

/** Limit of the control plane for one report. */
const REPORT_ITEMS_MAX = 5_000

/** An item, its epoch, and the version of it that the control plane has acknowledged. */
export interface Counted<T> {
  readonly item: T
  readonly epoch: string
  /** Start of the day or minute. */
  readonly from: number
  changes: number
  acknowledged: number
  /** What was acknowledged last. */
  reported?: T
  /** When, on the monotonic clock; before that, when it was added. */
  reportedAt: number
}

/** A snapshot of unsent items, as one report. */
export interface Batch {
  readonly report: Report
  /**
   * To be called with the response. Items that were accepted, or rejected permanently, are not sent again.
   */
  acknowledge(receipt: Receipt): void
}

interface Pending {
  list: 'counters' | 'tunnels'
  counted: Counted<unknown>
  /** A copy, because counting continues while the report is in flight. */
  item: unknown
  changes: number
}

export function toBatches(
  counters: Iterable<Counted<CounterItem>>,
  minutes: Iterable<Counted<MinuteItem>>,
  onAcknowledged: () => void,
): Batch[] {
  const pending = [...pendingOf('counters', counters), ...pendingOf('tunnels', minutes)]
  return [...Map.groupBy(pending, ({ counted }) => counted.epoch)].flatMap(([epoch, items]) =>
    chunks(items).map((chunk) => batchOf(epoch, chunk, onAcknowledged)),
  )
}

function* pendingOf(list: Pending['list'], counted: Iterable<Counted<object>>): Generator<Pending> {
  for (const one of counted)
    if (one.changes > one.acknowledged)
      yield { list, counted: one, item: { ...one.item }, changes: one.changes }
}

function batchOf(epoch: string, pending: Pending[], onAcknowledged: () => void): Batch {
  const lists = { counters: [] as Pending[], tunnels: [] as Pending[] }
  for (const one of pending) lists[one.list].push(one)
  return {
    report: {
      epoch,
      counters: lists.counters.map(({ item }) => item as CounterItem),
      tunnels: lists.tunnels.map(({ item }) => item as MinuteItem),
    },
    acknowledge({ rejected }) {
      const retried = new Set(rejected.filter(isTemporary).map(({ list, index }) => lists[list][index]))
      for (const one of pending) {
        if (retried.has(one)) continue
        one.counted.acknowledged = one.changes
        one.counted.reported = one.item
        one.counted.reportedAt = performance.now()
      }
      onAcknowledged()
    },
  }
}

function chunks<T>(items: T[]): T[][] {
  const parts = []
  for (let start = 0; start < items.length; start += REPORT_ITEMS_MAX)
    parts.push(items.slice(start, start + REPORT_ITEMS_MAX))
  return parts
}
