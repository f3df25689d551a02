// Usage, merged idempotently. Edges send running totals, and a counter is the maximum of the stored and the
// reported value. A day's total changes by the difference, in the same transaction, so reads are cheap.
//
// Locks are taken in this order: an edge's own rows first, which only its own reports touch, then the shared
// rows (totals of hours, days), shortly before the commit. Each kind is locked in the order of its keys, so
// that transactions cannot deadlock.
import { omitShards } from './bulk.ts'
import { isMultiShard, isOutOfRange } from './db-errors.ts'
import { readUsageFloor } from './maintenance.ts'
import { asText, type Db, type Store, type Tx } from './store.ts'
import { addHours, mergeHours } from './usage-hours.ts'
import { exceeds, NO_LIMIT, type RejectedCounter, uncheckedMaxOf } from './usage-limits.ts'
import { mergeCounters } from './usage-merge.ts'
import {
  type CounterRow,
  counterRowsOf,
  hourKey,
  hoursOf,
  type ParsedReport,
  type Totals,
  type TunnelHour,
} from './usage-report.ts'
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
} from './usage-rows.ts'
import { isSharded, splitByShard } from './usage-shards.ts'

export interface DayUsage {
  day: number
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
  peakTunnels: number
}

const ATTEMPTS_MAX = 10

/** Thrown to leave the transaction: rows are inserted by one of their own, then the merge is repeated. */
class RowsMissing extends Error {
  readonly rows: MissingRows

  constructor(rows: Partial<MissingRows>) {
    super('Usage rows must be inserted first.')
    this.rows = { counters: [], hours: [], days: [], ...rows }
  }
}

/**
 * Merges reports of any edges, in one transaction if they belong to one shard. Commits the counters within the
 * limits; returns for each report the days of its rejected counters, with the reason.
 */
export async function mergeReports(
  store: Store,
  reports: readonly ParsedReport[],
  edgeMax: Totals = NO_LIMIT,
): Promise<RejectedCounter[][]> {
  try {
    return await mergeShard(store, reports, edgeMax)
  } catch (error) {
    if (!isMultiShard(error)) throw error
    store.usageShards.invalidate()
    const rejected: RejectedCounter[][] = []
    for (const report of reports) {
      const parts = await splitByShard(store.usageShards, report)
      const ofParts: RejectedCounter[][] = []
      for (const part of parts) ofParts.push(...(await mergeShard(store, [part.report], edgeMax)))
      rejected.push(ofParts.flat())
    }
    return rejected
  }
}

async function mergeShard(
  store: Store,
  reports: readonly ParsedReport[],
  edgeMax: Totals,
): Promise<RejectedCounter[][]> {
  const counters = reports.map(counterRowsOf)
  const reported = counters.flat()
  const group: Group = {
    reported,
    sorted: sortedRows(reported),
    hours: hoursOf(reports).sort((a, b) => compare(hourKey(a), hourKey(b))),
    edgeMax,
    checksDays: false,
    insertsDirectly: store.engine === 'sqlite',
    isSharded: false,
  }
  const [first = group.hours[0]] = reported
  if (!first) return reports.map(() => [])
  group.isSharded = await isSharded(store.usageShards, first.workspaceId)
  for (let attempt = 1; ; attempt++) {
    try {
      const rejected = await store.transaction((db) => mergeGroup(db, group))
      return counters.map((rows) =>
        rows.flatMap((row) => {
          const reason = rejected.get(row)
          return reason ? [{ workspaceId: row.workspaceId, day: row.day, reason }] : []
        }),
      )
    } catch (error) {
      if (attempt === ATTEMPTS_MAX) throw error
      if (error instanceof RowsMissing) await store.transaction((db) => insertMissing(db, error.rows))
      else if (isOutOfRange(error)) group.checksDays = true
      else throw error
    }
  }
}

interface Group {
  /** In order of arrival. */
  reported: readonly CounterRow[]
  /** One for each key, in the order in which rows are locked. */
  sorted: readonly CounterRow[]
  hours: readonly TunnelHour[]
  edgeMax: Totals
  /** After an overflow: read the days' totals and reject what does not fit. */
  checksDays: boolean
  /**
   * On PostgreSQL, missing rows are inserted by a transaction of their own: one that holds locks and waits for
   * an insert could deadlock.
   */
  insertsDirectly: boolean
  isSharded: boolean
}

async function mergeGroup(db: Tx, group: Group) {
  const { reported, sorted, hours, edgeMax, checksDays, insertsDirectly } = group
  if (!group.isSharded) omitShards(db)
  const uncheckedMax = uncheckedMaxOf(edgeMax)
  const toCheck = reported.filter((row) => exceeds(row, uncheckedMax))
  if (!insertsDirectly) await lockEdges(db, toCheck)
  const stored = await lockCounters(db, sorted)
  const storedHours = await lockHours(db, hours)
  const missing = sorted.filter((row) => !stored.has(row.key))
  const edges = await readEdgeDays(db, [...toCheck, ...missing])
  const floor = missing.length > 0 ? await readUsageFloor(db) : 0
  const daySums = checksDays ? { daySums: await lockDays(db, sorted) } : {}
  const { rows, deltas, rejected } = mergeCounters({ stored, reported, edges, floor, edgeMax, ...daySums })
  if (!insertsDirectly) {
    const absent = {
      hours: hours.filter((hour) => !storedHours.has(hourKey(hour))),
      counters: missing.filter((row) => rows.has(row.key)),
    }
    if (absent.hours.length + absent.counters.length > 0) throw new RowsMissing(absent)
  }
  await writeCounters(
    db,
    sorted.flatMap(({ key }) => rows.get(key) ?? []),
  )
  const merged = mergeHours(storedHours, hours)
  await writeHours(db, merged.rows)
  const totals = await lockHours(db, merged.deltas)
  const missingTotals = merged.deltas.filter((hour) => !totals.has(hourKey(hour)))
  if (missingTotals.length > 0 && !insertsDirectly) throw new RowsMissing({ hours: missingTotals })
  await writeHours(db, addHours(totals, merged.deltas, deltas))
  const days = [...deltas].sort(([a], [b]) => compare(a, b)).map(([, delta]) => delta)
  if ((await addToDays(db, days)) < days.length) throw new RowsMissing({ days })
  return rejected
}

function sortedRows(rows: readonly CounterRow[]): CounterRow[] {
  const byKey = new Map(rows.map((row) => [row.key, row]))
  return [...byKey.values()].sort((a, b) => compare(a.key, b.key))
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)

export async function readDays(db: Db, workspaceId: string, from: number, to: number): Promise<DayUsage[]> {
  const rows = await db
    .selectFrom('usage_days')
    .select([
      'day',
      asText('requests').as('requests'),
      asText('bytes_in').as('bytesIn'),
      asText('bytes_out').as('bytesOut'),
      asText('events').as('events'),
      'peak_tunnels as peakTunnels',
    ])
    .where('workspace_id', '=', workspaceId)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .orderBy('day')
    .execute()
  return rows.map((row) => ({
    day: row.day,
    requests: BigInt(row.requests),
    bytesIn: BigInt(row.bytesIn),
    bytesOut: BigInt(row.bytesOut),
    events: BigInt(row.events),
    peakTunnels: row.peakTunnels,
  }))
}

/** A day's last traffic lies within the day, so the newest day that has any holds the latest. */
export async function findLastSeen(db: Db, workspaceId: string): Promise<number | null> {
  const row = await db
    .selectFrom('usage_days')
    .select('last_seen')
    .where('workspace_id', '=', workspaceId)
    .where('last_seen', 'is not', null)
    .orderBy('day', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row?.last_seen ?? null
}
