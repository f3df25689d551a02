// What an edge has counted: running totals by workspace and UTC day, and the most tunnels open in each minute. Kept until
// the control plane has it, within a bound.
import type { Receipt, Report } from './control-plane.ts'
import { isTemporary } from './refusals.ts'

type CounterItem = NonNullable<Report['counters']>[number]
type MinuteItem = NonNullable<Report['tunnels']>[number]

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** What the control plane takes in one report, and at the most in one item. */
const REPORT_ITEMS_MAX = 5_000
const OPEN_MAX = 1_000_000
/** The form of a workspace's slug; whatever has another would have the whole report refused. */
const SLUG = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** What is counted, under which epoch, and which state of it the control plane has acknowledged. */
interface Counted<T> {
  readonly item: T
  readonly epoch: string
  /** The first moment that the item speaks of. */
  readonly from: number
  changes: number
  acknowledged: number
}

export interface Transfer {
  requests?: number
  bytesIn?: number
  bytesOut?: number
}

/** Part of what is still to be sent, as it stood when it was taken. */
export interface Batch {
  readonly report: Report
  /** To be called with the answer: what was taken is over and done with. */
  acknowledge(receipt: Receipt): void
}

export interface UsageCounters {
  opened(workspace: string): void
  closed(workspace: string): void
  refused(workspace: string): void
  transferred(workspace: string, transfer: Transfer): void
  /** Tunnels that stay open count in every minute; to be called at least once in each. */
  tick(): void
  /** All that is still to be sent, in reports that the control plane takes. */
  unsent(): Batch[]
  /** How often something could not be counted because the bound was reached. */
  lost(): number
}

export function createUsageCounters(run: string, clock: () => number, itemsMax: number): UsageCounters {
  const counters = new Map<string, Counted<CounterItem>>()
  const minutes = new Map<string, Counted<MinuteItem>>()
  const open = new Map<string, number>()
  let lost = 0
  /** Totals that were forgotten must not begin anew under the same epoch: the larger of two is kept, not their sum. */
  let forgotten = 0
  /** When it was last seen that nothing could be forgotten, and no acknowledgement came since. */
  let fullAt: number | undefined

  const epoch = () => (forgotten === 0 ? run : `${run}.${forgotten}`)
  const isFull = () => counters.size + minutes.size >= itemsMax

  /** Finds or begins what is counted under a name; undefined where there is no room left. */
  function at<T>(counted: Map<string, Counted<T>>, workspace: string, from: number, item: () => T) {
    const name = `${from} ${workspace}`
    const found = counted.get(name)
    if (found) return found
    if (!SLUG.test(workspace)) throw new RangeError(`"${workspace}" is no slug of a workspace.`)
    if (isFull()) makeRoom()
    if (isFull()) {
      lost += 1
      return undefined
    }
    const begun: Counted<T> = { item: item(), epoch: epoch(), from, changes: 0, acknowledged: 0 }
    counted.set(name, begun)
    return begun
  }

  /** What is acknowledged goes first, then minutes that are not the peak of their day, the smallest first. */
  function makeRoom(): void {
    const minute = startOf(clock(), MINUTE_MS)
    if (fullAt === minute) return
    forgetSettled(Number.POSITIVE_INFINITY)
    if (isFull()) thinMinutes()
    fullAt = isFull() ? minute : undefined
  }

  function thinMinutes(): void {
    const peaks = new Map<string, Counted<MinuteItem>>()
    for (const minute of minutes.values()) {
      const day = `${startOf(minute.from, DAY_MS)} ${minute.item.workspace}`
      if (minute.item.open > (peaks.get(day)?.item.open ?? -1)) peaks.set(day, minute)
    }
    const kept = new Set(peaks.values())
    const others = [...minutes].filter(([, minute]) => !kept.has(minute))
    others.sort(([, a], [, b]) => a.item.open - b.item.open || a.from - b.from)
    for (const [name] of others.slice(0, Math.ceil(others.length / 2))) minutes.delete(name)
  }

  /** Forgets what was acknowledged: all minutes, because a maximum may begin anew, and totals from before a moment. */
  function forgetSettled(before: number): void {
    const drop = (counted: Map<string, Counted<unknown>>, before: number) => {
      const present = counted.size
      for (const [name, one] of counted)
        if (one.changes === one.acknowledged && one.from < before) counted.delete(name)
      return counted.size < present
    }
    drop(minutes, Number.POSITIVE_INFINITY)
    if (drop(counters, before)) forgotten += 1
  }

  function count(workspace: string, add: (totals: CounterItem, now: number) => void): void {
    const now = clock()
    const day = startOf(now, DAY_MS)
    const counter = at(counters, workspace, day, () => ({
      workspace,
      day: new Date(day).toISOString().slice(0, 10),
      requests: 0,
      bytesIn: 0,
      bytesOut: 0,
      events: 0,
    }))
    if (!counter) return
    add(counter.item, now)
    counter.changes += 1
  }

  function noteOpen(workspace: string): void {
    const tunnels = Math.min(open.get(workspace) ?? 0, OPEN_MAX)
    const from = startOf(clock(), MINUTE_MS)
    const minute = at(minutes, workspace, from, () => ({
      workspace,
      minute: new Date(from).toISOString(),
      open: 0,
    }))
    if (!minute || minute.item.open >= tunnels) return
    minute.item.open = tunnels
    minute.changes += 1
  }

  const event = (workspace: string) =>
    count(workspace, (totals) => {
      totals.events = sum(totals.events, 1)
    })

  return {
    opened(workspace) {
      event(workspace)
      open.set(workspace, (open.get(workspace) ?? 0) + 1)
      noteOpen(workspace)
    },
    closed(workspace) {
      event(workspace)
      const tunnels = open.get(workspace) ?? 0
      if (tunnels > 0) noteOpen(workspace)
      if (tunnels > 1) open.set(workspace, tunnels - 1)
      else open.delete(workspace)
    },
    refused: event,
    transferred(workspace, { requests = 0, bytesIn = 0, bytesOut = 0 }) {
      for (const figure of [requests, bytesIn, bytesOut])
        if (!Number.isSafeInteger(figure) || figure < 0)
          throw new RangeError(`${figure} cannot be counted: it must be a whole number, 0 or more.`)
      count(workspace, (totals, now) => {
        totals.requests = sum(totals.requests, requests)
        totals.bytesIn = sum(totals.bytesIn, bytesIn)
        totals.bytesOut = sum(totals.bytesOut, bytesOut)
        totals.lastSeen = new Date(now).toISOString()
      })
    },
    tick() {
      for (const workspace of open.keys()) noteOpen(workspace)
    },
    unsent() {
      forgetSettled(startOf(clock(), DAY_MS))
      const pending = [...pendingOf('counters', counters.values()), ...pendingOf('tunnels', minutes.values())]
      const onAcknowledged = () => {
        fullAt = undefined
      }
      return [...Map.groupBy(pending, ({ counted }) => counted.epoch)].flatMap(([epoch, items]) =>
        chunks(items).map((chunk) => batchOf(epoch, chunk, onAcknowledged)),
      )
    },
    lost: () => lost,
  }
}

interface Pending {
  list: 'counters' | 'tunnels'
  counted: Counted<unknown>
  /** A copy: counting goes on while it is sent. */
  item: unknown
  changes: number
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
    acknowledge({ refused }) {
      const sendAgain = new Set(refused.filter(isTemporary).map(({ list, index }) => lists[list][index]))
      for (const one of pending) if (!sendAgain.has(one)) one.counted.acknowledged = one.changes
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

/** Past what is exact, a total stands still: the control plane would refuse the whole report. */
const sum = (total: number, more: number) => Math.min(total + more, Number.MAX_SAFE_INTEGER)

const startOf = (moment: number, unitMs: number) => moment - (moment % unitMs)
