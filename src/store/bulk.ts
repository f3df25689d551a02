// Statements over many input rows, available as the table `input`. Built by hand: compiling thousands of
// values with the query builder takes longer than writing them.
import { CompiledQuery, PostgresAdapter } from 'kysely'
import type { Db } from './store.ts'

type Value = string | number | bigint | null
type Row = readonly Value[]

/** Column names and types, in the order of the values. */
type Columns = Readonly<Record<string, 'text' | 'bigint'>>

/** Small enough to stay in the page cache between statements, and to cache the prepared statements. */
const BATCH_ROWS = 100

/** PostgreSQL takes all rows in one batch; SQLite limits the parameters of a statement. */
export function* batches<T>(db: Db, items: readonly T[]): Generator<readonly T[]> {
  const size = isPostgres(db) ? items.length : BATCH_ROWS
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

export async function executeBulk<R>(
  db: Db,
  columns: Columns,
  rows: readonly Row[],
  statement: string,
): Promise<R[]> {
  const { source, parameters } = isPostgres(db) ? asArrays(columns, rows) : asValues(columns, rows)
  const text = `with input (${Object.keys(columns).join(', ')}) as (${source}) ${statement}`
  return (await db.executeQuery(CompiledQuery.raw(text, parameters))).rows as R[]
}

const isPostgres = (db: Db) => db.getExecutor().adapter instanceof PostgresAdapter

/** One parameter per column. */
function asArrays(columns: Columns, rows: readonly Row[]) {
  const types = Object.values(columns)
  const arrays = types.map((type, index) => `cast($${index + 1} as ${type}[])`)
  return {
    source: `select * from unnest(${arrays.join(', ')})`,
    parameters: types.map((_, index) => rows.map((row) => row[index])),
  }
}

/** One parameter per value. */
function asValues(columns: Columns, rows: readonly Row[]) {
  const row = `(${Object.keys(columns).fill('?').join(', ')})`
  return { source: `values ${Array(rows.length).fill(row).join(', ')}`, parameters: rows.flat() }
}
