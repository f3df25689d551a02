// In-memory usage counters of an edge: cumulative totals by workspace and UTC day, and the peak of open
// tunnels in each minute. Counters stay in memory until the control plane acknowledges them, up to a limit.
import { isDnsLabel } from '../../lib/net/hostname.ts'
import { DAY_MS, MINUTE_MS } from '../../lib/time.ts'
import { type CounterItem, type MinuteItem, type ReportBatch, toBatches, type UsageEntry } from './batches.ts'
import type { Unreported } from './quotas.ts'

/** Limit of the control plane for one item. */
const OPEN_MAX = 1_000_000

export interface Transfer {
  requests?: number
  bytesIn?: number
  bytesOut?: number
}

export interface UsageCounters {
  /** `isCounted` is false if another edge counts the tunnel. */
  opened(workspace: string, isCounted?: boolean): void
  closed(workspace: string, isCounted?: boolean): void
  /** Counts an open tunnel that another edge has counted before, or counts from now on. */
  count(workspace: string, isCounted: boolean): void
  rejected(workspace: string): void
  transferred(workspace: string, transfer: Transfer): void
  /** Records the open tunnels of the current minute. Call it at least once a minute. */
  tick(): void
  /** Usage that was not acknowledged, split into reports within the limits of the control plane. */
  unreported(): ReportBatch[]
  /** Unreported counters of urgent workspaces, without their minutes of open tunnels. */
  unreportedIf(isUrgent: (workspace: string, unreported: Unreported) => boolean): ReportBatch[]
  /** How many times usage was not counted because the limit was reached. */
  lost(): number
}

interface UsageCountersOptions {
  /** The id of the first epoch. */
  run: string
  clock: () => number
  itemsMax: number
  /** Whether open tunnels are recorded at the moment. */
  mayCount: () => boolean
}

export function createUsageCounters({ run, clock, itemsMax, mayCount }: UsageCountersOptions): UsageCounters {
  const counters = new Map<string, UsageEntry<CounterItem>>()
  const minutes = new Map<string, UsageEntry<MinuteItem>>()
  const open = new Map<string, number>()
  let lost = 0
  /**
   * Evicted totals must not restart under the same epoch: the control plane keeps the larger of two totals,
   * not the sum. So each eviction starts a new epoch.
   */
  let evictions = 0
  /** The minute in which eviction made no room; undefined if something was acknowledged since. */
  let fullAt: number | undefined

  const onAcknowledged = () => {
    fullAt = undefined
  }
  const epoch = () => (evictions === 0 ? run : `${run}.${evictions}`)
  const isFull = () => counters.size + minutes.size >= itemsMax

  /** Undefined if there is no room. */
  function findOrAdd<T>(entries: Map<string, UsageEntry<T>>, workspace: string, from: number, item: () => T) {
    const name = `${from} ${workspace}`
    const existing = entries.get(name)
    if (existing) return existing
    // One malformed slug would make the control plane reject the whole report.
    if (!isDnsLabel(workspace)) throw new RangeError(`Invalid workspace slug "${workspace}"`)
    if (isFull()) makeRoom()
    if (isFull()) {
      lost += 1
      return undefined
    }
    const added: UsageEntry<T> = {
      item: item(),
      epoch: epoch(),
      from,
      revision: 0,
      acknowledgedRevision: 0,
      reportedAt: performance.now(),
    }
    entries.set(name, added)
    return added
  }

  /** Evicts acknowledged items first, then minutes that are not the peak of their day, the smallest first. */
  function makeRoom(): void {
    const minute = floorTime(clock(), MINUTE_MS)
    if (fullAt === minute) return
    evictAcknowledged(Number.POSITIVE_INFINITY)
    if (isFull()) thinMinutes()
    fullAt = isFull() ? minute : undefined
  }

  function thinMinutes(): void {
    const peaks = new Map<string, UsageEntry<MinuteItem>>()
    for (const minute of minutes.values()) {
      const day = `${floorTime(minute.from, DAY_MS)} ${minute.item.workspace}`
      if (minute.item.open > (peaks.get(day)?.item.open ?? -1)) peaks.set(day, minute)
    }
    const dayPeaks = new Set(peaks.values())
    const others = [...minutes].filter(([, minute]) => !dayPeaks.has(minute))
    others.sort(([, a], [, b]) => a.item.open - b.item.open || a.from - b.from)
    for (const [name] of others.slice(0, Math.ceil(others.length / 2))) minutes.delete(name)
  }

  /** Evicts acknowledged totals before a time, and all acknowledged minutes: a maximum may restart at 0. */
  function evictAcknowledged(before: number): void {
    const evict = (entries: Map<string, UsageEntry<unknown>>, end: number) => {
      const { size } = entries
      for (const [name, { revision, acknowledgedRevision, from }] of entries)
        if (revision === acknowledgedRevision && from < end) entries.delete(name)
      return entries.size < size
    }
    evict(minutes, Number.POSITIVE_INFINITY)
    if (evict(counters, before)) evictions += 1
  }

  function addTo(workspace: string, add: (totals: CounterItem, now: number) => void): void {
    const now = clock()
    const day = floorTime(now, DAY_MS)
    const counter = findOrAdd(counters, workspace, day, () => ({
      workspace,
      day: new Date(day).toISOString().slice(0, 10),
      requests: 0,
      bytesIn: 0,
      bytesOut: 0,
      events: 0,
    }))
    if (!counter) return
    add(counter.item, now)
    counter.revision += 1
  }

  function recordOpen(workspace: string): void {
    if (!mayCount()) return
    const tunnels = Math.min(open.get(workspace) ?? 0, OPEN_MAX)
    const from = floorTime(clock(), MINUTE_MS)
    const minute = findOrAdd(minutes, workspace, from, () => ({
      workspace,
      minute: new Date(from).toISOString(),
      open: 0,
    }))
    if (!minute || minute.item.open >= tunnels) return
    minute.item.open = tunnels
    minute.revision += 1
  }

  const countEvent = (workspace: string) =>
    addTo(workspace, (totals) => {
      totals.events = sum(totals.events, 1)
    })

  function countOpen(workspace: string, isCounted: boolean): void {
    const tunnels = open.get(workspace) ?? 0
    if (isCounted) open.set(workspace, tunnels + 1)
    if (isCounted || tunnels > 0) recordOpen(workspace)
    if (isCounted) return
    if (tunnels > 1) open.set(workspace, tunnels - 1)
    else open.delete(workspace)
  }

  return {
    opened(workspace, isCounted = true) {
      countEvent(workspace)
      if (isCounted) countOpen(workspace, true)
    },
    closed(workspace, isCounted = true) {
      countEvent(workspace)
      if (isCounted) countOpen(workspace, false)
    },
    count: countOpen,
    rejected: countEvent,
    transferred(workspace, { requests = 0, bytesIn = 0, bytesOut = 0 }) {
      for (const value of [requests, bytesIn, bytesOut])
        if (!Number.isSafeInteger(value) || value < 0)
          throw new RangeError(`Invalid count ${value} (expected an integer of 0 or more)`)
      addTo(workspace, (totals, now) => {
        totals.requests = sum(totals.requests, requests)
        totals.bytesIn = sum(totals.bytesIn, bytesIn)
        totals.bytesOut = sum(totals.bytesOut, bytesOut)
        totals.lastSeen = new Date(now).toISOString()
      })
    },
    tick() {
      for (const workspace of open.keys()) recordOpen(workspace)
    },
    unreported() {
      evictAcknowledged(floorTime(clock(), DAY_MS))
      return toBatches(counters.values(), minutes.values(), onAcknowledged)
    },
    unreportedIf(isUrgent) {
      const now = performance.now()
      const urgent = counters.values().filter((counter) => {
        if (counter.revision === counter.acknowledgedRevision) return false
        const { item, reported = NOTHING_REPORTED } = counter
        return isUrgent(item.workspace, {
          bytes: item.bytesIn + item.bytesOut - reported.bytesIn - reported.bytesOut,
          requests: item.requests - reported.requests,
          sinceMs: now - counter.reportedAt,
        })
      })
      return toBatches(urgent, [], onAcknowledged)
    },
    lost: () => lost,
  }
}

const NOTHING_REPORTED = { bytesIn: 0, bytesOut: 0, requests: 0 }

/** Saturates at the largest exact integer: the control plane would reject the whole report otherwise. */
const sum = (total: number, more: number) => Math.min(total + more, Number.MAX_SAFE_INTEGER)

const floorTime = (timeMs: number, unitMs: number) => timeMs - (timeMs % unitMs)
