// What an edge reports, and how a report is put in order before it is merged: one item per row, in one order.

export const DAY_MS = 86_400_000

/** In UTC, like every time here. */
export const startOfDay = (ms: number): number => ms - (ms % DAY_MS)

/** Running totals of one edge since its start (the epoch), for one workspace and one UTC day. */
export interface Counter {
  workspaceId: string
  /** Start of the UTC day. */
  day: number
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
  /** Last traffic, within that day. */
  lastSeen: number | null
}

/** The most tunnels that an edge had open for a workspace in one UTC minute. */
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
 * One item for each row, sorted: a statement may not touch a row twice, and one order for all prevents deadlock. Counters
 * that are all zero change no total, so they need no row.
 */
export function normalize({ counters, tunnels }: ParsedReport) {
  const merged = {
    counters: mergeTwins(counters, counterKey, largerCounter).filter(isNotZero),
    tunnels: mergeTwins(tunnels, minuteKey, largerMinute),
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

const largerCounter = (a: Counter, b: Counter): Counter => ({
  workspaceId: a.workspaceId,
  day: a.day,
  requests: larger(a.requests, b.requests),
  bytesIn: larger(a.bytesIn, b.bytesIn),
  bytesOut: larger(a.bytesOut, b.bytesOut),
  events: larger(a.events, b.events),
  lastSeen:
    a.lastSeen === null || b.lastSeen === null ? (a.lastSeen ?? b.lastSeen) : larger(a.lastSeen, b.lastSeen),
})

function larger<T extends number | bigint>(a: T, b: T): T {
  return a < b ? b : a
}

const largerMinute = (a: TunnelMinute, b: TunnelMinute): TunnelMinute => (a.open >= b.open ? a : b)

function mergeTwins<T>(items: readonly T[], keyOf: (item: T) => string, merge: (a: T, b: T) => T): T[] {
  const merged = new Map<string, T>()
  for (const item of items) {
    const key = keyOf(item)
    const twin = merged.get(key)
    merged.set(key, twin === undefined ? item : merge(twin, item))
  }
  return [...merged].sort(([a], [b]) => compare(a, b)).map(([, item]) => item)
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
