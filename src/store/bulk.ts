// Many rows for one statement, which finds them under the name `given`. Put together by hand: what a query builder makes of
// thousands of values takes longer than the database takes to write them.
import { CompiledQuery, PostgresAdapter } from 'kysely'
import type { Db } from './store.ts'

type Value = string | number | bigint | null
type Row = readonly Value[]

/** Their columns, in the order of the values. */
type Columns = Readonly<Record<string, 'text' | 'bigint'>>

/** Few enough that what one statement has touched is still at hand for the next, and that the texts can be kept prepared. */
const ROWS_PER_PORTION = 100

/** PostgreSQL takes any number at once; SQLite bounds the parameters of a statement. */
export function* batches<T>(db: Db, items: readonly T[]): Generator<readonly T[]> {
  const size = isPostgres(db) ? items.length : ROWS_PER_PORTION
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

export async function executeBulk<R>(
  db: Db,
  columns: Columns,
  rows: readonly Row[],
  statement: string,
): Promise<R[]> {
  const { source, parameters } = isPostgres(db) ? asArrays(columns, rows) : asValues(columns, rows)
  const text = `with given (${Object.keys(columns).join(', ')}) as (${source}) ${statement}`
  return (await db.executeQuery(CompiledQuery.raw(text, parameters))).rows as R[]
}

const isPostgres = (db: Db) => db.getExecutor().adapter instanceof PostgresAdapter

/** One parameter a column. */
function asArrays(columns: Columns, rows: readonly Row[]) {
  const types = Object.values(columns)
  const arrays = types.map((type, index) => `cast($${index + 1} as ${type}[])`)
  return {
    source: `select * from unnest(${arrays.join(', ')})`,
    parameters: types.map((_, index) => rows.map((row) => row[index])),
  }
}

/** One parameter a value. */
function asValues(columns: Columns, rows: readonly Row[]) {
  const row = `(${Object.keys(columns).fill('?').join(', ')})`
  return { source: `values ${Array(rows.length).fill(row).join(', ')}`, parameters: rows.flat() }
}
