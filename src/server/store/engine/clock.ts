// The database's clock in milliseconds, for leases and expiries: they must not depend on the clocks of nodes.
import { type RawBuilder, sql } from 'kysely'
import { isPostgres } from './bulk.ts'
import type { Db, Store } from './store.ts'

const texts: Record<Store['engine'], string> = {
  sqlite: `cast(round(unixepoch('subsec') * 1000) as integer)`,
  postgres: 'cast(extract(epoch from clock_timestamp()) * 1000 as bigint)',
}

export const databaseNow: Record<Store['engine'], RawBuilder<number>> = {
  sqlite: sql.raw(texts.sqlite),
  postgres: sql.raw(texts.postgres),
}

/** SQL text of the time, for statements that are built by hand. */
export const nowText = (db: Db): string => texts[isPostgres(db) ? 'postgres' : 'sqlite']

/**
 * The time at which the statement started. Unlike `nowIn`, an index can be used to compare with it, and Citus
 * accepts it in the conditions of an update.
 */
export const statementTimeIn = (db: Db): RawBuilder<number> =>
  isPostgres(db)
    ? sql.raw('cast(extract(epoch from statement_timestamp()) * 1000 as bigint)')
    : databaseNow.sqlite

export const nowIn = (db: Db): RawBuilder<number> => databaseNow[isPostgres(db) ? 'postgres' : 'sqlite']

export async function readDatabaseClock({ db, engine }: Store): Promise<number> {
  const { rows } = await sql<{ now: number }>`select ${databaseNow[engine]} as now`.execute(db)
  return rows[0]?.now as number
}
