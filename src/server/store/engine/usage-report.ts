// Usage reports, and their conversion to rows for merging.
import { MINUTE_MS, startOfHour } from '../../../lib/time.ts'

export interface Day {
  workspaceId: string
  /** Start of the UTC day. */
  day: number
}

export interface Totals {
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
}

/** Integers; the API accepts only those that are exact as numbers. */
export type Amounts = Record<keyof Totals, number | bigint>

export const noUsage: Totals = { requests: 0n, bytesIn: 0n, bytesOut: 0n, events: 0n }

export const counterFields = ['requests', 'bytesIn', 'bytesOut', 'events'] as const

/** Running totals of one edge since its start (the epoch), for one workspace and one UTC day. */
export interface Counter extends Day, Amounts {
  /** Time of the last traffic, within that day. */
  lastSeen: number | null
}

/** Peak of concurrently open tunnels of an edge for a workspace in one UTC minute. */
export interface TunnelMinute {
  workspaceId: string
  /** Start of the UTC minute. */
  minute: number
  open: number
}

export interface ParsedReport {
  edgeId: string
  epoch: string
  counters: readonly Counter[]
  tunnels: readonly TunnelMinute[]
}

/** A row of `usage_counters`. */
export interface CounterRow extends Day, Totals {
  lastSeen: number | null
  edgeId: string
  epoch: string
  /** Identifies the row, and sorts the rows. */
  key: string
}

/** A row of `usage_hours`. */
export interface HourKey {
  workspaceId: string
  /** Start of the UTC hour. */
  hour: number
  edgeId: string
}

export interface TunnelHour extends HourKey {
  /** By minute of the hour; 0 where nothing was reported. */
  open: number[]
}

/** Ids, epochs and numbers contain no space. */
export const dayKey = ({ workspaceId, day }: Day) => `${workspaceId} ${day}`
export const edgeDayKey = (row: Day & { edgeId: string }) => `${row.workspaceId} ${row.day} ${row.edgeId}`
export const hourKey = ({ workspaceId, hour, edgeId }: HourKey) => `${hour} ${workspaceId} ${edgeId}`

/**
 * The counters of a report as rows. Duplicates are merged, so that a row is accepted or rejected as a whole.
 * Counters that are all zero, without `lastSeen`, change nothing and are dropped.
 */
export function toCounterRows({ edgeId, epoch, counters }: ParsedReport): CounterRow[] {
  const rows = new Map<string, CounterRow>()
  for (const counter of counters) {
    const row = toCounterRow(edgeId, epoch, counter)
    if (isZero(row)) continue
    const duplicate = rows.get(row.key)
    rows.set(row.key, duplicate ? maxRow(duplicate, row) : row)
  }
  return [...rows.values()]
}

export function toCounterRow(edgeId: string, epoch: string, counter: Counter): CounterRow {
  const { workspaceId, day, requests, bytesIn, bytesOut, events, lastSeen } = counter
  const key = `${workspaceId} ${day} ${edgeId} ${epoch}`
  return {
    workspaceId,
    day,
    edgeId,
    epoch,
    key,
    requests: BigInt(requests),
    bytesIn: BigInt(bytesIn),
    bytesOut: BigInt(bytesOut),
    events: BigInt(events),
    lastSeen,
  }
}

/** The open tunnels of the reports by hour, without hours that have none. */
export function groupByHour(reports: readonly ParsedReport[]): TunnelHour[] {
  const hours = new Map<string, TunnelHour>()
  for (const { edgeId, tunnels } of reports)
    for (const { workspaceId, minute, open } of tunnels) {
      if (open === 0) continue
      const hour = startOfHour(minute)
      const key = hourKey({ workspaceId, hour, edgeId })
      const reported = hours.get(key) ?? { workspaceId, hour, edgeId, open: Array<number>(60).fill(0) }
      hours.set(key, reported)
      const slot = (minute - hour) / MINUTE_MS
      reported.open[slot] = greatest(reported.open[slot] as number, open)
    }
  return [...hours.values()]
}

const isZero = ({ requests, bytesIn, bytesOut, events, lastSeen }: CounterRow) =>
  requests === 0n && bytesIn === 0n && bytesOut === 0n && events === 0n && lastSeen === null

/** The larger of each field, for two reports of the same row. */
export const maxRow = (a: CounterRow, b: CounterRow): CounterRow => ({
  workspaceId: a.workspaceId,
  day: a.day,
  edgeId: a.edgeId,
  epoch: a.epoch,
  key: a.key,
  requests: greatest(a.requests, b.requests),
  bytesIn: greatest(a.bytesIn, b.bytesIn),
  bytesOut: greatest(a.bytesOut, b.bytesOut),
  events: greatest(a.events, b.events),
  lastSeen: latest(a.lastSeen, b.lastSeen),
})

export const latest = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : greatest(a, b)

function greatest<T extends number | bigint>(a: T, b: T): T {
  return a < b ? b : a
}
