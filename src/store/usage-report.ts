// A usage report, and its normalization before it is merged: one item per row, sorted.
import { startOfDay } from '../time.ts'

/** Running totals of one edge since its start (the epoch), for one workspace and one UTC day. */
export interface Counter {
  workspaceId: string
  /** Start of the UTC day. */
  day: number
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
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

export interface Day {
  workspaceId: string
  day: number
}

/**
 * Merges duplicates and sorts: a statement must not touch a row twice, and locking rows in one order prevents
 * deadlocks. Counters that are all zero change no total and are dropped.
 */
export function normalizeReport({ counters, tunnels }: ParsedReport) {
  const merged = {
    counters: mergeDuplicates(counters, counterKey, greatestCounter).filter(isNotZero),
    tunnels: mergeDuplicates(tunnels, minuteKey, greatestMinute),
  }
  return { ...merged, days: touchedDays(merged.counters, merged.tunnels) }
}

function touchedDays(counters: readonly Counter[], tunnels: readonly TunnelMinute[]): Day[] {
  const days = new Map<string, Day>()
  for (const { workspaceId, day } of counters) days.set(`${day} ${workspaceId}`, { workspaceId, day })
  for (const { workspaceId, minute } of tunnels) {
    const day = startOfDay(minute)
    days.set(`${day} ${workspaceId}`, { workspaceId, day })
  }
  return [...days.values()].sort((a, b) => compare(a.workspaceId, b.workspaceId) || a.day - b.day)
}

const isNotZero = ({ requests, bytesIn, bytesOut, events, lastSeen }: Counter) =>
  requests > 0n || bytesIn > 0n || bytesOut > 0n || events > 0n || lastSeen !== null

const counterKey = (counter: Counter) => `${counter.workspaceId} ${counter.day}`
const minuteKey = (tunnels: TunnelMinute) => `${tunnels.workspaceId} ${tunnels.minute}`

const greatestCounter = (a: Counter, b: Counter): Counter => ({
  workspaceId: a.workspaceId,
  day: a.day,
  requests: greatest(a.requests, b.requests),
  bytesIn: greatest(a.bytesIn, b.bytesIn),
  bytesOut: greatest(a.bytesOut, b.bytesOut),
  events: greatest(a.events, b.events),
  lastSeen:
    a.lastSeen === null || b.lastSeen === null
      ? (a.lastSeen ?? b.lastSeen)
      : greatest(a.lastSeen, b.lastSeen),
})

function greatest<T extends number | bigint>(a: T, b: T): T {
  return a < b ? b : a
}

const greatestMinute = (a: TunnelMinute, b: TunnelMinute): TunnelMinute => (a.open >= b.open ? a : b)

function mergeDuplicates<T>(items: readonly T[], keyOf: (item: T) => string, merge: (a: T, b: T) => T): T[] {
  const merged = new Map<string, T>()
  for (const item of items) {
    const key = keyOf(item)
    const duplicate = merged.get(key)
    merged.set(key, duplicate === undefined ? item : merge(duplicate, item))
  }
  return [...merged].sort(([a], [b]) => compare(a, b)).map(([, item]) => item)
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
