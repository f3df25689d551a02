// Statements that many tables need: an insert that a row may already be there for, and a count.
import type { Insertable, SelectQueryBuilder } from 'kysely'
import type { Tx } from './store.ts'
import type { Tables } from './tables.ts'

/** Returns false if there is a row with the same values in the `unique` columns. */
export async function insertUnlessExists<Table extends keyof Tables>(
  db: Tx,
  table: Table,
  row: Insertable<Tables[Table]>,
  unique: readonly (keyof Tables[Table])[],
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto(table as keyof Tables)
    .values(row as never)
    .onConflict((conflict) => conflict.columns(unique as never).doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

/** Counts the rows of a query without a selection. */
export async function countRows<DB, Table extends keyof DB>(
  query: SelectQueryBuilder<DB, Table, object>,
): Promise<number> {
  const counted = query.select((row) => row.fn.countAll().as('count'))
  const { count } = (await counted.executeTakeFirstOrThrow()) as { count: number | string | bigint }
  return Number(count)
}
