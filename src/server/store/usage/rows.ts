// The statements of the usage tables. Each handles many rows of certain workspaces.
import { sql } from 'kysely'
import {
  deleteBulk,
  executeBulk,
  insertBulk,
  inWorkspaces,
  lockBulk,
  type UsageTx,
  writeBulk,
} from '../engine/bulk.ts'
import type { Tx } from '../engine/store.ts'
import { EPOCHS_MAX } from '../engine/usage-limits.ts'
import {
  type CounterRow,
  type Day,
  dayKey,
  edgeDayKey,
  type HourKey,
  hourKey,
  type Totals,
  type TunnelHour,
} from '../engine/usage-report.ts'
import { readUsageFloor } from './floor.ts'
import { decodeHour, encodeHour, totalKey } from './hours.ts'
import type { DayDelta, EdgeDay } from './merge.ts'

const dayColumns = { workspace_id: 'text', day: 'bigint' } as const
const counterColumns = { ...dayColumns, edge_id: 'text', epoch: 'text' } as const
const hourColumns = { workspace_id: 'text', hour: 'bigint', edge_id: 'text' } as const
const sumColumns = { requests: 'bigint', bytes_in: 'bigint', bytes_out: 'bigint', events: 'bigint' } as const
const sums = Object.keys(sumColumns)

export async function lockCounters(
  tx: UsageTx,
  rows: readonly CounterRow[],
): Promise<Map<string, CounterRow>> {
  const keys = rows.map((row) => [row.workspaceId, row.day, row.edgeId, row.epoch])
  const found = await lockBulk(tx, 'usage_counters', counterColumns, keys, [...sums, 'last_seen'])
  const stored = new Map<string, CounterRow>()
  for (const [index, { workspaceId, day, edgeId, epoch, key }] of rows.entries()) {
    if (found[0]?.[index] === undefined) continue
    const { requests, bytesIn, bytesOut, events } = totalsAt(found, index)
    const lastSeen = Number(found[4]?.[index]) || null
    stored.set(key, { workspaceId, day, edgeId, epoch, key, requests, bytesIn, bytesOut, events, lastSeen })
  }
  return stored
}

/** The peaks by hour and edge. */
export async function lockHours(tx: UsageTx, hours: readonly HourKey[]): Promise<Map<string, number[]>> {
  const keys = hours.map((row) => [row.workspaceId, row.hour, row.edgeId])
  const [open = []] = await lockBulk(tx, 'usage_hours', hourColumns, keys, ['open'])
  const stored = new Map<string, number[]>()
  for (const [index, text] of open.entries())
    if (text !== undefined) stored.set(hourKey(hours[index] as HourKey), decodeHour(text))
  return stored
}

/** Locks the days in the order of their keys, and returns their totals. */
export async function lockDays(tx: UsageTx, days: readonly Day[]): Promise<Map<string, Totals>> {
  const unique = sortedBy(dayKey, days)
  const keys = unique.map(({ workspaceId, day }) => [workspaceId, day])
  const found = await lockBulk(tx, 'usage_days', dayColumns, keys, sums)
  const stored = new Map<string, Totals>()
  for (const [index, day] of unique.entries())
    if (found[0]?.[index] !== undefined) stored.set(dayKey(day), totalsAt(found, index))
  return stored
}

/**
 * Only one transaction at a time may check the sum or the number of an edge's epochs, because it does not see
 * uncommitted epochs of others.
 */
export async function lockEdges(db: Tx, rows: readonly CounterRow[]): Promise<void> {
  if (rows.length === 0) return
  const edges = [...new Set(rows.map(({ edgeId }) => edgeId))]
  await db.selectFrom('edges').select('id').where('id', 'in', edges).orderBy('id').forNoKeyUpdate().execute()
}

/** Number and sums of an edge's epochs in a day, by edge and day. */
export async function readEdgeDays(tx: UsageTx, rows: readonly CounterRow[]): Promise<Map<string, EdgeDay>> {
  const unique = [...new Map(rows.map((row) => [edgeDayKey(row), row])).values()]
  const found = await executeBulk<SumRow & Record<'key' | 'epochs', string>>(
    tx.db,
    { ...dayColumns, edge_id: 'text' },
    unique.map(({ workspaceId, day, edgeId }) => [workspaceId, day, edgeId]),
    `select c.workspace_id || ' ' || cast(c.day as text) || ' ' || c.edge_id as key, count(*) as epochs,
       ${sums.map((column) => `cast(sum(c.${column}) as text) as ${column}`).join(', ')}
     from input cross join usage_counters as c
     where c.workspace_id = input.workspace_id and c.day = input.day and c.edge_id = input.edge_id
       ${inWorkspaces(tx, 'c')}
     group by c.workspace_id, c.day, c.edge_id`,
  )
  return new Map(found.map((row) => [row.key, { epochs: Number(row.epochs), sums: toTotals(row) }]))
}

/** Rows of a merge that do not exist yet. */
export interface MissingRows {
  counters: readonly CounterRow[]
  hours: readonly HourKey[]
  days: readonly Day[]
}

/** Inserts rows without usage. Losing them is harmless, so the commit does not wait for the disk. */
export async function insertMissing(tx: UsageTx, { counters, hours, days }: MissingRows): Promise<void> {
  await sql`set local synchronous_commit = off`.execute(tx.db)
  // Checked again, because the floor may have been raised or epochs added since the merge read them.
  const floor = await readUsageFloor(tx.db)
  await lockEdges(tx.db, counters)
  const epochs = new Map([...(await readEdgeDays(tx, counters))].map(([key, edge]) => [key, edge.epochs]))
  const allowed = counters.filter((row) => {
    const count = epochs.get(edgeDayKey(row)) ?? 0
    epochs.set(edgeDayKey(row), count + 1)
    return row.day >= floor && count < EPOCHS_MAX
  })
  await insertBulk(
    tx,
    'usage_counters',
    { ...counterColumns, ...sumColumns },
    allowed.map((row) => [row.workspaceId, row.day, row.edgeId, row.epoch, 0, 0, 0, 0]),
  )
  await insertBulk(
    tx,
    'usage_hours',
    { ...hourColumns, open: 'text' },
    sortedBy(hourKey, [...hours, ...hours.map(totalKey)]).map((row) => [
      row.workspaceId,
      row.hour,
      row.edgeId,
      '',
    ]),
  )
  await insertBulk(
    tx,
    'usage_days',
    dayColumns,
    sortedBy(dayKey, [...allowed, ...days]).map(({ workspaceId, day }) => [workspaceId, day]),
  )
}

/** One row for each key, in the order of the keys. */
const sortedBy = <T>(getKey: (row: T) => string, rows: readonly T[]): T[] =>
  [...new Map(rows.map((row) => [getKey(row), row]))]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row)

export const writeCounters = (tx: UsageTx, rows: readonly CounterRow[]) =>
  writeBulk(
    tx,
    'usage_counters',
    { key: counterColumns, values: { ...sumColumns, last_seen: 'bigint' } },
    rows.map((row) => [
      row.workspaceId,
      row.day,
      row.edgeId,
      row.epoch,
      row.requests,
      row.bytesIn,
      row.bytesOut,
      row.events,
      row.lastSeen,
    ]),
  )

export const deleteCounters = (tx: UsageTx, rows: readonly CounterRow[]) =>
  deleteBulk(
    tx,
    'usage_counters',
    counterColumns,
    rows.map((row) => [row.workspaceId, row.day, row.edgeId, row.epoch]),
  )

export const deleteHours = (tx: UsageTx, rows: readonly HourKey[]) =>
  deleteBulk(
    tx,
    'usage_hours',
    hourColumns,
    rows.map((row) => [row.workspaceId, row.hour, row.edgeId]),
  )

export const writeHours = (tx: UsageTx, rows: readonly TunnelHour[]) =>
  writeBulk(
    tx,
    'usage_hours',
    { key: hourColumns, values: { open: 'text' } },
    rows.map((row) => [row.workspaceId, row.hour, row.edgeId, encodeHour(row.open)]),
  )

/** Returns the number of days that exist. */
export const addToDays = (tx: UsageTx, deltas: readonly DayDelta[]): Promise<number> =>
  writeBulk(
    tx,
    'usage_days',
    {
      key: dayColumns,
      values: dayValues,
      changes: {
        ...Object.fromEntries(sums.map((column) => [column, (stored, added) => `${stored} + ${added}`])),
        peak_tunnels: greatest,
        last_seen: greatest,
      },
      // Most minutes of open tunnels are not the peak of their day.
      isChange: [
        ...sums.map((column) => `excluded.${column} > 0`),
        ...['peak_tunnels', 'last_seen'].map(
          (column) => `excluded.${column} > coalesce(usage_days.${column}, -1)`,
        ),
      ].join(' or '),
    },
    deltas.map(toDayRow),
  )

/** Inserts days without counters, unless they exist. */
export const insertDays = (tx: UsageTx, days: readonly DayDelta[]) =>
  insertBulk(tx, 'usage_days', { ...dayColumns, ...dayValues }, days.map(toDayRow))

const dayValues = { ...sumColumns, peak_tunnels: 'bigint', last_seen: 'bigint' } as const

const toDayRow = (delta: DayDelta) => [
  delta.workspaceId,
  delta.day,
  delta.requests,
  delta.bytesIn,
  delta.bytesOut,
  delta.events,
  delta.peakTunnels,
  delta.lastSeen,
]

/** Treats null as less than any value. */
const greatest = (stored: string, added: string) =>
  `case when ${added} > ${stored} or ${stored} is null then ${added} else ${stored} end`

/** Sums as text. */
type SumRow = Record<keyof typeof sumColumns, string>

export const toTotals = (row: SumRow): Totals => ({
  requests: BigInt(row.requests),
  bytesIn: BigInt(row.bytes_in),
  bytesOut: BigInt(row.bytes_out),
  events: BigInt(row.events),
})

/** The first four columns, in the order of `sums`. */
const totalsAt = (columns: readonly (readonly (string | undefined)[])[], index: number): Totals => ({
  requests: BigInt(columns[0]?.[index] ?? 0),
  bytesIn: BigInt(columns[1]?.[index] ?? 0),
  bytesOut: BigInt(columns[2]?.[index] ?? 0),
  events: BigInt(columns[3]?.[index] ?? 0),
})
