// Merges usage reports idempotently. Edges send running totals, and a counter is the maximum of the stored
// and the reported value. A day's total changes by the difference, in the same transaction, so reads are
// cheap.
//
// Lock order: first the rows of the edge, which only its own reports touch, then the shared rows (totals of
// hours, days) shortly before the commit. Each kind is locked in the order of its keys, so that transactions
// cannot deadlock.

import { sql } from 'kysely'
import { startOfDay } from '../../../lib/time.ts'
import type { UsageTx } from '../engine/bulk.ts'
import { isOutOfRange, Overloaded } from '../engine/errors.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Store } from '../engine/store.ts'
import { exceeds, NO_LIMIT, type RejectedCounter, uncheckedMaximum } from '../engine/usage-limits.ts'
import {
  type CounterRow,
  groupByHour,
  hourKey,
  type ParsedReport,
  type Totals,
  type TunnelHour,
  toCounterRows,
} from '../engine/usage-report.ts'
import { readUsageFloor } from './floor.ts'
import { addHours, mergeHours } from './hours.ts'
import { mergeCounters } from './merge.ts'
import {
  addToDays,
  insertMissing,
  lockCounters,
  lockDays,
  lockEdges,
  lockHours,
  type MissingRows,
  readEdgeDays,
  writeCounters,
  writeHours,
} from './rows.ts'

export interface DayUsage extends Totals {
  day: number
  peakTunnels: number
}

const ATTEMPTS_MAX = 10

/** Thrown to leave the transaction: another one inserts the rows, and the merge is repeated. */
class RowsMissing extends Error {
  readonly rows: MissingRows

  constructor(rows: Partial<MissingRows>) {
    super('Usage rows must be inserted first.')
    this.rows = { counters: [], hours: [], days: [], ...rows }
  }
}

/**
 * Merges reports of any edges in one transaction. All workspaces must belong to one shard. Commits the
 * counters within the limits; returns for each report the days of its rejected counters, with the reason.
 */
export async function commitReports(
  store: Store,
  reports: readonly ParsedReport[],
  edgeMax: Totals = NO_LIMIT,
): Promise<RejectedCounter[][]> {
  if (reports.every(({ counters, tunnels }) => counters.length + tunnels.length === 0))
    return reports.map(() => [])
  const isDistributed = await store.usageShards.isDistributed()
  let checksDays = false
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.transaction(async (db) => {
        const cache = checksDays ? undefined : store.counterCache
        const uncachedReports = cache?.merge(reports, uncheckedMaximum(edgeMax)) ?? reports
        return mergeInTransaction({ db, isDistributed }, uncachedReports, {
          edgeMax,
          checksDays,
          insertsDirectly: store.engine === 'sqlite',
        })
      })
    } catch (error) {
      if (error instanceof RowsMissing) {
        if (attempt === ATTEMPTS_MAX) throw new Overloaded('Usage rows are deleted faster than inserted.')
        await store.transaction((db) => insertMissing({ db, isDistributed }, error.rows))
      } else if (isOutOfRange(error) && attempt < ATTEMPTS_MAX) checksDays = true
      else throw error
    }
  }
}

interface MergeOptions {
  edgeMax: Totals
  /** Set after an overflow, to read the days' totals and reject counters that do not fit. */
  checksDays: boolean
  /**
   * Whether missing rows are inserted in the same transaction. On PostgreSQL, one that has locked rows and
   * waits for an insert could deadlock. Days are written last, so they need this only on Citus (`writeBulk`).
   */
  insertsDirectly: boolean
}

async function mergeInTransaction(
  tx: UsageTx,
  reports: readonly ParsedReport[],
  { edgeMax, checksDays, insertsDirectly }: MergeOptions,
): Promise<RejectedCounter[][]> {
  const { db } = tx
  const counters = reports.map(toCounterRows)
  // In the order of arrival.
  const reported = counters.flat()
  // One row for each key, in locking order.
  const sorted = sortedRows(reported)
  const hours = groupByHour(reports).sort((a, b) => compare(hourKey(a), hourKey(b)))
  const uncheckedMax = uncheckedMaximum(edgeMax)
  const toCheck = reported.filter((row) => exceeds(row, uncheckedMax))
  if (!insertsDirectly) await lockEdges(db, toCheck)
  const stored = await lockCounters(tx, sorted)
  const storedHours = await lockHours(tx, hours)
  const merged = mergeHours(storedHours, hours)
  const missing = sorted.filter((row) => !stored.has(row.key))
  const edges = await readEdgeDays(tx, [...toCheck, ...missing])
  const floor = missing.length > 0 ? await readUsageFloor(db) : 0
  const daySums = checksDays ? await lockDaySums(tx, sorted, merged.deltas) : undefined
  const { rows, deltas, rejected } = mergeCounters({ stored, reported, edges, floor, edgeMax, daySums })
  if (!insertsDirectly) {
    const absent = {
      hours: hours.filter((hour) => !storedHours.has(hourKey(hour))),
      counters: missing.filter((row) => rows.has(row.key)),
    }
    if (absent.hours.length + absent.counters.length > 0) throw new RowsMissing(absent)
  }
  await writeCounters(
    tx,
    sorted.flatMap(({ key }) => rows.get(key) ?? []),
  )
  await writeHours(tx, merged.rows)
  const totals = await lockHours(tx, merged.deltas)
  const missingTotals = merged.deltas.filter((hour) => !totals.has(hourKey(hour)))
  if (missingTotals.length > 0 && !insertsDirectly) throw new RowsMissing({ hours: missingTotals })
  await writeHours(tx, addHours(totals, merged.deltas, deltas))
  const days = [...deltas].sort(([a], [b]) => compare(a, b)).map(([, delta]) => delta)
  if ((await addToDays(tx, days)) < days.length) throw new RowsMissing({ days })
  return counters.map((reportRows) =>
    reportRows.flatMap((row) => {
      const reason = rejected.get(row)
      return reason ? [{ workspaceId: row.workspaceId, day: row.day, reason }] : []
    }),
  )
}

/** Locks all shared rows that the merge can change, in the order of every merge: totals of hours first. */
async function lockDaySums(tx: UsageTx, counters: readonly CounterRow[], totals: readonly TunnelHour[]) {
  await lockHours(tx, totals)
  const days = totals.map(({ workspaceId, hour }) => ({ workspaceId, day: startOfDay(hour) }))
  return lockDays(tx, [...counters, ...days])
}

function sortedRows(rows: readonly CounterRow[]): CounterRow[] {
  const byKey = new Map(rows.map((row) => [row.key, row]))
  return [...byKey.values()].sort((a, b) => compare(a.key, b.key))
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

/** Totals of the days that have usage, oldest first. */
export const readDays = async (db: Db, workspaceId: string, from: number, to: number): Promise<DayUsage[]> =>
  (await readUsage(db, workspaceId, from, to)).days

/** Also returns the time of the last traffic on any day. */
export async function readUsage(
  db: Db,
  workspaceId: string,
  from: number,
  to: number,
): Promise<{ days: DayUsage[]; lastSeen: number | null }> {
  const [row] = await selectUsage(db, { workspaceId, from, to })
  if (!row) throw new Error('an aggregate without groups returned no row')
  const [requests, bytesIn, bytesOut] = [split(row.requests), split(row.bytesIn), split(row.bytesOut)]
  const [events, peakTunnels] = [split(row.events), split(row.peakTunnels)]
  const days = split(row.day).map((day, index) => ({
    day: Number(day),
    requests: BigInt(requests[index] as string),
    bytesIn: BigInt(bytesIn[index] as string),
    bytesOut: BigInt(bytesOut[index] as string),
    events: BigInt(events[index] as string),
    peakTunnels: Number(peakTunnels[index]),
  }))
  return { days: days.sort((a, b) => a.day - b.day), lastSeen: row.lastSeen }
}

const split = (list: string | null) => list?.split(',') ?? []

interface DayRange {
  workspaceId: string
  from: number
  to: number
}

/** Joined values of all days; null if there are none. */
type UsageLists = Record<keyof DayUsage, string | null>

const joinValues = (column: string) => sql`string_agg(cast(${sql.ref(column)} as text), ',')`

/**
 * Returns one row with the values of all days as text, in the same order for each column, because the driver
 * takes several times as long to read a row for each day. `last_seen` is a time of its day, so reading the
 * newest day that has one is enough.
 */
const selectUsage = statement(
  (_: Db, { workspaceId, from, to }: Placeholders<DayRange>) => sql<UsageLists & { lastSeen: number | null }>`
    select ${joinValues('day')} as "day", ${joinValues('requests')} as "requests",
      ${joinValues('bytes_in')} as "bytesIn", ${joinValues('bytes_out')} as "bytesOut",
      ${joinValues('events')} as "events", ${joinValues('peak_tunnels')} as "peakTunnels",
      (select last_seen from usage_days where workspace_id = ${workspaceId} and last_seen is not null
        order by day desc limit 1) as "lastSeen"
    from usage_days where workspace_id = ${workspaceId} and day >= ${from} and day <= ${to}`,
)
