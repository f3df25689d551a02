// The database's clock in milliseconds, for leases and expiries: they must not depend on the clocks of nodes.
import { type RawBuilder, sql } from 'kysely'
import { isPostgres } from './bulk.ts'
import type { Db, Store } from './store.ts'

/** SQL text of the time, for statements that are built by hand. */
export const nowText = (db: Db): string =>
  isPostgres(db)
    ? 'cast(extract(epoch from clock_timestamp()) * 1000 as bigint)'
    : `cast(round(unixepoch('subsec') * 1000) as integer)`

export const nowIn = (db: Db): RawBuilder<number> => sql.raw(nowText(db))

/**
 * The time at which the statement started. Unlike `nowIn`, an index can be used to compare with it, and Citus
 * accepts it in the conditions of an update.
 */
export const statementTimeIn = (db: Db): RawBuilder<number> =>
  isPostgres(db) ? sql.raw('cast(extract(epoch from statement_timestamp()) * 1000 as bigint)') : nowIn(db)

export async function readDatabaseClock({ db }: Store): Promise<number> {
  const { rows } = await sql<{ now: number }>`select ${nowIn(db)} as now`.execute(db)
  return rows[0]?.now as number
}
