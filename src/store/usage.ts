// Usage that cannot be counted twice. Edges send running totals, and what is kept is always the larger of what is
// there and what comes: a report that is repeated, late, reordered or doubled changes nothing, and a lost one is
// healed by the next. A day's roll-up is written from the counters in the same transaction, so reads stay short.
import { sql } from 'kysely'
import { type Db, exact, type Store } from './store.ts'
import { type Counter, DAY_MS, type Day, normalise, type Report, type TunnelMinute } from './usage-report.ts'

export interface DayUsage {
  day: number
  requests: bigint
  bytesIn: bigint
  bytesOut: bigint
  events: bigint
  peakTunnels: number
}

/** Keeps every statement below the engines' limits on parameters. */
const ROWS_PER_STATEMENT = 1_000

/** The sum of a day would pass 64 bits: somebody counts what cannot have been. */
export class TotalTooLarge extends Error {
  override name = 'TotalTooLarge'
}

export async function mergeReport(store: Store, report: Report): Promise<void> {
  const { counters, tunnels, days } = normalise(report)
  if (days.length === 0) return
  try {
    await store.transaction(async (db) => {
      await lockDays(db, days)
      for (const rows of chunks(counters)) await mergeCounters(db, report, rows)
      for (const rows of chunks(tunnels)) await mergeMinutes(db, report.edgeId, rows)
      for (const rows of chunks(days)) await rollUpCounters(db, rows)
      for (const rows of chunks(tunnels)) await rollUpPeaks(db, rows)
    })
  } catch (error) {
    throw isOverflow(error) ? new TotalTooLarge('a day’s total is too large', { cause: error }) : error
  }
}

/** PostgreSQL by its code, SQLite by its words: it has no code of its own for this. */
const isOverflow = (error: unknown) =>
  (error as { code?: string }).code === '22003' || (error as Error).message === 'integer overflow'

export async function readDays(db: Db, workspaceId: string, from: number, to: number): Promise<DayUsage[]> {
  const rows = await db
    .selectFrom('usage_days')
    .select([
      'day',
      exact('requests').as('requests'),
      exact('bytes_in').as('bytesIn'),
      exact('bytes_out').as('bytesOut'),
      exact('events').as('events'),
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

/**
 * Writing the rows to themselves locks them, those that are new included, and on every engine alike. All reports take
 * them in one order, so two of them cannot wait for each other.
 */
async function lockDays(db: Db, days: readonly Day[]): Promise<void> {
  for (const rows of chunks(days))
    await db
      .insertInto('usage_days')
      .values(rows.map(({ workspaceId, day }) => ({ workspace_id: workspaceId, day, last_seen: null })))
      .onConflict((conflict) =>
        conflict.columns(['workspace_id', 'day']).doUpdateSet((row) => ({ day: row.ref('excluded.day') })),
      )
      .execute()
}

const larger = (table: string, column: string) => {
  const present = sql.ref(`${table}.${column}`)
  const given = sql.ref(`excluded.${column}`)
  return sql<never>`case when ${given} > ${present} or ${present} is null then ${given} else ${present} end`
}

async function mergeCounters(db: Db, { edgeId, epoch }: Report, counters: readonly Counter[]): Promise<void> {
  await db
    .insertInto('usage_counters')
    .values(
      counters.map((counter) => ({
        workspace_id: counter.workspaceId,
        day: counter.day,
        edge_id: edgeId,
        epoch,
        requests: counter.requests,
        bytes_in: counter.bytesIn,
        bytes_out: counter.bytesOut,
        events: counter.events,
        last_seen: counter.lastSeen,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'day', 'edge_id', 'epoch']).doUpdateSet({
        requests: larger('usage_counters', 'requests'),
        bytes_in: larger('usage_counters', 'bytes_in'),
        bytes_out: larger('usage_counters', 'bytes_out'),
        events: larger('usage_counters', 'events'),
        last_seen: larger('usage_counters', 'last_seen'),
      }),
    )
    .execute()
}

async function mergeMinutes(db: Db, edgeId: string, tunnels: readonly TunnelMinute[]): Promise<void> {
  await db
    .insertInto('usage_minutes')
    .values(
      tunnels.map(({ workspaceId, minute, open }) => ({
        workspace_id: workspaceId,
        minute,
        edge_id: edgeId,
        open,
      })),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['workspace_id', 'minute', 'edge_id'])
        .doUpdateSet({ open: larger('usage_minutes', 'open') }),
    )
    .execute()
}

async function rollUpCounters(db: Db, days: readonly Day[]): Promise<void> {
  const ours = sql`c.workspace_id = usage_days.workspace_id and c.day = usage_days.day`
  const total = (column: string) =>
    sql<bigint>`(select coalesce(sum(${sql.ref(`c.${column}`)}), 0) from usage_counters as c where ${ours})`
  await db
    .updateTable('usage_days')
    .set({
      requests: total('requests'),
      bytes_in: total('bytes_in'),
      bytes_out: total('bytes_out'),
      events: total('events'),
      last_seen: sql<number>`(select max(c.last_seen) from usage_counters as c where ${ours})`,
    })
    .where(
      sql<boolean>`(workspace_id, day) in (values ${rowList(days.map((day) => [day.workspaceId, day.day]))})`,
    )
    .execute()
}

/** A minute's sum over the edges only ever grows, so the day's peak can only be raised by a minute just touched. */
async function rollUpPeaks(db: Db, tunnels: readonly TunnelMinute[]): Promise<void> {
  const touched = rowList(tunnels.map(({ workspaceId, minute }) => [workspaceId, minute]))
  const day = sql`m.minute - m.minute % ${sql.lit(DAY_MS)}`
  await sql`
    update usage_days set peak_tunnels = peaks.open
    from (
      select workspace_id, day, max(open) as open from (
        select m.workspace_id, ${day} as day, sum(m.open) as open
        from usage_minutes as m
        where (m.workspace_id, m.minute) in (values ${touched})
        group by m.workspace_id, m.minute
      ) as minutes
      group by workspace_id, day
    ) as peaks
    where usage_days.workspace_id = peaks.workspace_id and usage_days.day = peaks.day
      and usage_days.peak_tunnels < peaks.open`.execute(db)
}

/** `(workspace, time), …`; the casts tell PostgreSQL what bare parameters are, and SQLite does not mind them. */
const rowList = (rows: [workspaceId: string, time: number][]) =>
  sql.join(rows.map(([workspaceId, time]) => sql`(cast(${workspaceId} as text), cast(${time} as bigint))`))

function* chunks<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let start = 0; start < items.length; start += ROWS_PER_STATEMENT)
    yield items.slice(start, start + ROWS_PER_STATEMENT)
}
