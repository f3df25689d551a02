// The usage counters of a day by edge and epoch, and their removal by the operator.
import { type RawBuilder, sql } from 'kysely'
import { DAY_MS } from '../time.ts'
import { asText, type Db, type Tx } from './store.ts'
import type { Day } from './usage-report.ts'

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

export interface RemovedRows {
  counters: number
  minutes: number
}

/** Deletes the usage of a day, of all edges or one; undefined if there is none. */
export async function resetDay(
  db: Tx,
  { workspaceId, day }: Day,
  edgeId: string | undefined,
): Promise<RemovedRows | undefined> {
  const ofDay = sql`workspace_id = ${workspaceId} and day = ${day}`
  const inDay = sql`workspace_id = ${workspaceId} and minute >= ${day} and minute < ${day + DAY_MS}`
  const ofEdge = edgeId === undefined ? sql`` : sql`and edge_id = ${edgeId}`
  // First, because reports lock the day's row before any other.
  const locked =
    edgeId === undefined
      ? await count(db, sql`delete from usage_days where ${ofDay}`)
      : await count(db, sql`update usage_days set day = day where ${ofDay}`)
  if (locked === 0) return undefined
  const counters = await count(db, sql`delete from usage_counters where ${ofDay} ${ofEdge}`)
  const minutes = await count(db, sql`delete from usage_minutes where ${inDay} ${ofEdge}`)
  if (edgeId === undefined) return { counters, minutes }
  // Only if rows were removed: the counters of an old day may have been deleted to save space, and its sums
  // must stay.
  if (counters > 0) {
    const sums = ['requests', 'bytes_in', 'bytes_out', 'events'].map(
      (column) =>
        sql`${sql.ref(column)} =
          coalesce((select sum(${sql.ref(column)}) from usage_counters where ${ofDay}), 0)`,
    )
    const lastSeen = sql`last_seen = (select max(last_seen) from usage_counters where ${ofDay})`
    await count(db, sql`update usage_days set ${sql.join([...sums, lastSeen])} where ${ofDay}`)
  }
  if (minutes > 0) {
    const open = sql`select sum(open) as open from usage_minutes where ${inDay} group by minute`
    const peak = sql`coalesce((select max(open) from (${open}) as minutes), 0)`
    await count(db, sql`update usage_days set peak_tunnels = ${peak} where ${ofDay}`)
  }
  return counters + minutes > 0 ? { counters, minutes } : undefined
}

/** Runs a statement and returns the number of affected rows. */
const count = async (db: Tx, statement: RawBuilder<unknown>): Promise<number> =>
  Number((await statement.execute(db)).numAffectedRows ?? 0)
