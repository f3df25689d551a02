// Snapshots of unreported usage, as reports within the limits of the control plane.
import type { Receipt, Report } from '../api.ts'
import { isTemporary } from './rejected-items.ts'

export type CounterItem = NonNullable<Report['counters']>[number]
/** The peak of open tunnels of a workspace in one minute. The API calls the list of them `tunnels`. */
export type MinuteItem = NonNullable<Report['tunnels']>[number]

/** Limit of the control plane for one report. */
const REPORT_ITEMS_MAX = 5_000

/** An item, its epoch, and the revision that the control plane has acknowledged. */
export interface UsageEntry<T> {
  readonly item: T
  readonly epoch: string
  /** Start of the day or minute. */
  readonly from: number
  /** Incremented with each change of the item. */
  revision: number
  acknowledgedRevision: number
  /** The item as it was last acknowledged. */
  reported?: T
  /** When the item was last acknowledged, or else added, on the monotonic clock. */
  reportedAt: number
}

/** A snapshot of unreported items, as one report. */
export interface ReportBatch {
  readonly report: Report
  /** Call this with the response. Items that were accepted or rejected permanently are not sent again. */
  acknowledge(receipt: Receipt): void
}

interface Pending {
  list: 'counters' | 'tunnels'
  entry: UsageEntry<unknown>
  /** A copy, because counting continues while the report is in flight. */
  item: unknown
  revision: number
}

export function toBatches(
  counters: Iterable<UsageEntry<CounterItem>>,
  minutes: Iterable<UsageEntry<MinuteItem>>,
  onAcknowledged: () => void,
): ReportBatch[] {
  const pending = [...unreported('counters', counters), ...unreported('tunnels', minutes)]
  return [...Map.groupBy(pending, ({ entry }) => entry.epoch)].flatMap(([epoch, items]) =>
    chunks(items).map((chunk) => createBatch(epoch, chunk, onAcknowledged)),
  )
}

function* unreported(list: Pending['list'], entries: Iterable<UsageEntry<object>>): Generator<Pending> {
  for (const entry of entries)
    if (entry.revision > entry.acknowledgedRevision)
      yield { list, entry, item: { ...entry.item }, revision: entry.revision }
}

function createBatch(epoch: string, pending: Pending[], onAcknowledged: () => void): ReportBatch {
  const lists = { counters: [] as Pending[], tunnels: [] as Pending[] }
  for (const each of pending) lists[each.list].push(each)
  return {
    report: {
      epoch,
      counters: lists.counters.map(({ item }) => item as CounterItem),
      tunnels: lists.tunnels.map(({ item }) => item as MinuteItem),
    },
    acknowledge({ rejected }) {
      const retried = new Set(rejected.filter(isTemporary).map(({ list, index }) => lists[list][index]))
      for (const each of pending) {
        if (retried.has(each)) continue
        each.entry.acknowledgedRevision = each.revision
        each.entry.reported = each.item
        each.entry.reportedAt = performance.now()
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
