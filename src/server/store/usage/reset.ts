// The usage counters of a day by edge and epoch, and their removal by the operator.
import { sql } from 'kysely'
import { DAY_MS, HOUR_MS, startOfDay } from '../../../lib/time.ts'
import type { UsageTx } from '../engine/bulk.ts'
import { asText, type Db, type Tx } from '../engine/store.ts'
import {
  type Day,
  type HourKey,
  hourKey,
  noUsage,
  type TunnelHour,
  toCounterRow,
} from '../engine/usage-report.ts'
import { decodeHour, subtractHours } from './hours.ts'
import { difference, sum } from './merge.ts'
import {
  deleteCounters,
  deleteHours,
  lockCounters,
  lockDays,
  lockHours,
  toTotals,
  writeHours,
} from './rows.ts'

/** Largest first. */
export const listCounters = (db: Db, { workspaceId, day }: Day, limit: number) =>
  db
    .selectFrom('usage_counters as c')
    .leftJoin('edges', 'edges.id', 'c.edge_id')
    .select([
      'c.edge_id as edge',
      'edges.name as name',
      'c.epoch as epoch',
      asText('c.requests').as('requests'),
      asText('c.bytes_in').as('bytesIn'),
      asText('c.bytes_out').as('bytesOut'),
      asText('c.events').as('events'),
      'c.last_seen as lastSeen',
    ])
    .where('c.workspace_id', '=', workspaceId)
    .where('c.day', '=', day)
    .orderBy('c.bytes_in', 'desc')
    .orderBy('c.bytes_out', 'desc')
    .orderBy('c.edge_id')
    .orderBy('c.epoch')
    .limit(limit)
    .execute()

export interface ReportedDay {
  day: number
  requests: bigint
  bytes: bigint
}

interface ReportedRange {
  workspaceId: string
  edgeId: string
  /** Starts of days; `until` is excluded. */
  from: number
  until: number
}

/** Days for which the edge has reported counters or open tunnels, in order. */
export async function listReportedDays(db: Db, range: ReportedRange): Promise<ReportedDay[]> {
  const { workspaceId, edgeId, from, until } = range
  const counters = await db
    .selectFrom('usage_counters')
    .select([
      'day',
      sql<string>`cast(sum(requests) as text)`.as('requests'),
      sql<string>`cast(sum(bytes_in) + sum(bytes_out) as text)`.as('bytes'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('day', '>=', from)
    .where('day', '<', until)
    .where('edge_id', '=', edgeId)
    .groupBy('day')
    .execute()
  // One lookup per hour, because the primary key begins with the hour.
  const hours = await db
    .selectFrom('usage_hours')
    .select('hour')
    .where('workspace_id', '=', workspaceId)
    .where('hour', 'in', hoursBetween(from, until))
    .where('edge_id', '=', edgeId)
    .execute()
  const days = new Map(hours.map(({ hour }) => [startOfDay(hour), { requests: 0n, bytes: 0n }]))
  for (const { day, requests, bytes } of counters)
    days.set(day, { requests: BigInt(requests), bytes: BigInt(bytes) })
  return [...days].map(([day, sums]) => ({ day, ...sums })).sort((a, b) => a.day - b.day)
}

const hoursBetween = (from: number, until: number) =>
  Array.from({ length: (until - from) / HOUR_MS }, (_, index) => from + index * HOUR_MS)

interface RemovedRows {
  counters: number
  minutes: number
}

/**
 * Deletes the usage of a day, of all edges or one; undefined if there is none. Locks in the order of reports:
 * the rows of edges, the totals of hours, the day. Usage that a report adds meanwhile is kept.
 */
export async function resetDay(tx: UsageTx, day: Day, edgeId?: string): Promise<RemovedRows | undefined> {
  const { db } = tx
  const counters = [...(await lockCounters(tx, await listRows(db, day, edgeId))).values()]
  const { hours, totals } = await lockDayHours(tx, day, edgeId)
  const [sums] = (await lockDays(tx, [day])).values()
  if (!sums) return undefined
  await deleteCounters(tx, counters)
  await deleteHours(tx, hours)
  const remainingHours = subtractHours(totals, hours)
  await writeHours(tx, remainingHours.filter(isOpen))
  await deleteHours(
    tx,
    remainingHours.filter((hour) => !isOpen(hour)),
  )
  const minutes = countMinutes(hours)
  const rest = await readRest(db, day)
  const isDay = sql`workspace_id = ${day.workspaceId} and day = ${day.day}`
  if (edgeId === undefined && rest.isEmpty) {
    await sql`delete from usage_days where ${isDay}`.execute(db)
    return { counters: counters.length, minutes }
  }
  // The counters of an old day may have been deleted to save space, and its totals must stay.
  if (counters.length > 0) {
    const now = edgeId === undefined ? rest.sums : difference(sums, counters.reduce(sum, noUsage))
    await sql`update usage_days set requests = ${now.requests}, bytes_in = ${now.bytesIn},
      bytes_out = ${now.bytesOut}, events = ${now.events}, last_seen = ${rest.lastSeen}
      where ${isDay}`.execute(db)
  }
  if (minutes > 0)
    await sql`update usage_days set peak_tunnels = ${await readPeak(db, day)} where ${isDay}`.execute(db)
  return counters.length + minutes > 0 ? { counters: counters.length, minutes } : undefined
}

const isOpen = ({ open }: TunnelHour) => open.some((peak) => peak > 0)

async function listRows(db: Tx, { workspaceId, day }: Day, edgeId: string | undefined) {
  const query = db
    .selectFrom('usage_counters')
    .select(['edge_id', 'epoch'])
    .where('workspace_id', '=', workspaceId)
    .where('day', '=', day)
  const rows = await (edgeId === undefined ? query : query.where('edge_id', '=', edgeId)).execute()
  return rows
    .map((row) => toCounterRow(row.edge_id, row.epoch, { workspaceId, day, ...noUsage, lastSeen: null }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
}

/** The rows of the edges, and the totals of the day's hours. */
async function lockDayHours(tx: UsageTx, day: Day, edgeId: string | undefined) {
  const keys = (await readHours(tx.db, day)).sort((a, b) => (hourKey(a) < hourKey(b) ? -1 : 1))
  const lock = async (rows: readonly TunnelHour[]): Promise<TunnelHour[]> => {
    const stored = await lockHours(tx, rows)
    return rows.flatMap((row) => {
      const open = stored.get(hourKey(row))
      return open ? [{ ...row, open }] : []
    })
  }
  const isRemoved = (row: HourKey) => row.edgeId !== '' && (edgeId === undefined || row.edgeId === edgeId)
  const hours = await lock(keys.filter(isRemoved))
  return { hours, totals: await lock(keys.filter((row) => row.edgeId === '')) }
}

async function readHours(db: Tx, { workspaceId, day }: Day): Promise<TunnelHour[]> {
  const rows = await db
    .selectFrom('usage_hours')
    .select(['hour', 'edge_id', 'open'])
    .where('workspace_id', '=', workspaceId)
    .where('hour', 'in', hoursBetween(day, day + DAY_MS))
    .execute()
  return rows.map((row) => ({ workspaceId, hour: row.hour, edgeId: row.edge_id, open: decodeHour(row.open) }))
}

async function readPeak(db: Tx, day: Day): Promise<number> {
  const totals = (await readHours(db, day)).filter(({ edgeId }) => edgeId === '')
  return Math.max(0, ...totals.flatMap(({ open }) => open))
}

/** Reads remaining counters, such as those of a report that was committed meanwhile. */
async function readRest(db: Tx, { workspaceId, day }: Day) {
  const rest = await db
    .selectFrom('usage_counters')
    .select((row) => [
      sql<string>`cast(coalesce(sum(requests), 0) as text)`.as('requests'),
      sql<string>`cast(coalesce(sum(bytes_in), 0) as text)`.as('bytes_in'),
      sql<string>`cast(coalesce(sum(bytes_out), 0) as text)`.as('bytes_out'),
      sql<string>`cast(coalesce(sum(events), 0) as text)`.as('events'),
      row.fn.max('last_seen').as('lastSeen'),
      row.fn.countAll<number>().as('rows'),
    ])
    .where('workspace_id', '=', workspaceId)
    .where('day', '=', day)
    .executeTakeFirstOrThrow()
  return { isEmpty: Number(rest.rows) === 0, sums: toTotals(rest), lastSeen: rest.lastSeen }
}

const countMinutes = (hours: readonly TunnelHour[]) =>
  hours.reduce((count, { open }) => count + open.filter((peak) => peak > 0).length, 0)
