// What is revoked in a database, to revoke it in another one too.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { isOneOf, isPostgres, listParameter } from '../engine/bulk.ts'
import type { Page } from '../engine/page.ts'
import type { Db } from '../engine/store.ts'
import { inState } from '../keys/state.ts'

const isRevoked = {
  // Expired keys count too: a rotation may have shortened their lifetime.
  api_keys: (db: Db) => sql`not (${inState(db, 'active')})`,
  edges: () => sql`revoked_at is not null`,
  users: () => sql`disabled_at is not null`,
} satisfies Record<string, (db: Db) => RawBuilder<SqlBool>>

export type RevocableTable = keyof typeof isRevoked

/** The ids of revoked rows in all workspaces, sorted. */
export async function listRevoked(db: Db, table: RevocableTable, { after = '', limit }: Page) {
  const { rows } = await sql<{ id: string }>`select id from ${sql.table(table)}
    where id > ${after} and ${isRevoked[table](db)} order by id limit ${limit}`.execute(db)
  return rows
}

/**
 * Tells whether two URLs lead to the same database of one running server. A server that was restored from a
 * copy has the same system identifier, and was started at another time.
 */
export async function isSameDatabase(a: Db, b: Db): Promise<boolean> {
  if (!isPostgres(a) || !isPostgres(b)) return false
  const identify = async (db: Db) => {
    const { rows } = await sql<{ identity: string }>`select concat_ws(' ',
      extract(epoch from pg_postmaster_start_time()), current_database(), current_schema())
      as identity`.execute(db)
    return rows[0]?.identity
  }
  return (await identify(a)) === (await identify(b))
}

/** How many of the ids the table has. */
export async function countExisting(db: Db, table: RevocableTable, ids: readonly string[]): Promise<number> {
  const { rows } = await sql<{ count: number | string }>`select count(*) as count from ${sql.table(table)}
    where ${isOneOf(db, 'id', listParameter(db, ids))}`.execute(db)
  return Number(rows[0]?.count)
}
