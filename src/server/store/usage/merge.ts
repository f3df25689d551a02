// Merges reported counters with the stored rows. Pure functions; the statements are in rows.ts. A counter is
// the maximum of the stored and the reported value, and a day's total changes by the difference. So the cost
// depends only on the report, a repeated or old report changes nothing, and the order does not matter.
import {
  EPOCHS_MAX,
  exceeds,
  INT64_MAX,
  type RejectedCounter,
  uncheckedMaximum,
} from '../engine/usage-limits.ts'
import {
  type CounterRow,
  counterFields,
  type Day,
  dayKey,
  edgeDayKey,
  latest,
  maxRow,
  noUsage,
  type Totals,
} from '../engine/usage-report.ts'

/** The difference that a merge adds to a day's row. */
export interface DayDelta extends Day, Totals {
  lastSeen: number | null
  /** Peak of the minutes that changed; 0 if none did. */
  peakTunnels: number
}

/** All epochs of an edge in a workspace's day. */
export interface EdgeDay {
  epochs: number
  sums: Totals
}

export interface MergeInput {
  /** Rows of the reported counters, by key. */
  stored: ReadonlyMap<string, CounterRow>
  /** In the order of arrival; several may belong to one row. */
  reported: readonly CounterRow[]
  /** By edge and day, for counters that have no row yet and those whose sum must be checked. */
  edges: ReadonlyMap<string, EdgeDay>
  /**
   * Counters of earlier days may have been deleted although their totals stay. So a counter of such a day
   * without a row is rejected: it would be counted twice.
   */
  floor?: number
  /** Maximum of an edge in a day. */
  edgeMax: Totals
  /** Totals by day. If set, counters that would exceed 63 bits are rejected. */
  daySums?: ReadonlyMap<string, Totals> | undefined
}

interface MergeResult {
  /** Changed rows, by key. */
  rows: Map<string, CounterRow>
  /** The totals by day. */
  deltas: Map<string, DayDelta>
  rejected: Map<CounterRow, RejectedCounter['reason']>
}

export function mergeCounters({
  stored,
  reported,
  edges,
  floor = 0,
  edgeMax,
  daySums,
}: MergeInput): MergeResult {
  const uncheckedMax = uncheckedMaximum(edgeMax)
  const rows = new Map<string, CounterRow>()
  const deltas = new Map<string, DayDelta>()
  const rejected: MergeResult['rejected'] = new Map()
  const edgesNow = new Map(edges)
  const tracksEdges = reported.some((row) => !stored.has(row.key) || exceeds(row, uncheckedMax))
  const getEdgeDay = (row: CounterRow): EdgeDay => edgesNow.get(edgeDayKey(row)) ?? noEpochs

  const fitsEdge = (row: CounterRow, added: Totals) =>
    !exceeds(row, uncheckedMax) ||
    counterFields.every(
      (field) =>
        added[field] === 0n ||
        row[field] <= uncheckedMax[field] ||
        getEdgeDay(row).sums[field] + added[field] <= edgeMax[field],
    )

  function fitsDay(key: string, added: Totals): boolean {
    if (!daySums) return true
    const stored = daySums.get(key) ?? noUsage
    const delta = deltas.get(key) ?? noUsage
    return counterFields.every((field) => stored[field] + delta[field] + added[field] <= INT64_MAX)
  }

  for (const row of reported) {
    const before = rows.get(row.key) ?? stored.get(row.key)
    const after = before ? maxRow(before, row) : row
    const added = before ? difference(after, before) : row
    const day = dayKey(row)
    if (!before && row.day < floor) rejected.set(row, 'too_old')
    else if (!before && getEdgeDay(row).epochs >= EPOCHS_MAX) rejected.set(row, 'too_many_epochs')
    else if (!fitsEdge(row, added) || !fitsDay(day, added)) rejected.set(row, 'too_large')
    else if (!before || isChange(after, before, added)) {
      rows.set(row.key, after)
      const delta = deltas.get(day)
      if (delta) addToDelta(delta, added, row.lastSeen)
      else deltas.set(day, createDelta(row, added, row.lastSeen))
      if (!tracksEdges) continue
      const { epochs, sums } = getEdgeDay(row)
      edgesNow.set(edgeDayKey(row), { epochs: before ? epochs : epochs + 1, sums: sum(sums, added) })
    }
  }
  return { rows, deltas, rejected }
}

const noEpochs: EdgeDay = { epochs: 0, sums: noUsage }

export const sum = (a: Totals, b: Totals): Totals => ({
  requests: a.requests + b.requests,
  bytesIn: a.bytesIn + b.bytesIn,
  bytesOut: a.bytesOut + b.bytesOut,
  events: a.events + b.events,
})

export const difference = (after: Totals, before: Totals): Totals => ({
  requests: after.requests - before.requests,
  bytesIn: after.bytesIn - before.bytesIn,
  bytesOut: after.bytesOut - before.bytesOut,
  events: after.events - before.events,
})

const isChange = (
  after: { lastSeen: number | null },
  before: { lastSeen: number | null },
  { requests, bytesIn, bytesOut, events }: Totals,
) => requests > 0n || bytesIn > 0n || bytesOut > 0n || events > 0n || after.lastSeen !== before.lastSeen

function addToDelta(delta: DayDelta, added: Totals, lastSeen: number | null): void {
  delta.requests += added.requests
  delta.bytesIn += added.bytesIn
  delta.bytesOut += added.bytesOut
  delta.events += added.events
  delta.lastSeen = latest(delta.lastSeen, lastSeen)
}

export const createDelta = (
  { workspaceId, day }: Day,
  { requests, bytesIn, bytesOut, events }: Totals,
  lastSeen: number | null,
): DayDelta => ({ workspaceId, day, requests, bytesIn, bytesOut, events, lastSeen, peakTunnels: 0 })
