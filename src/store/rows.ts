// Many rows for one statement, which finds them under the name `given`. Put together by hand: what a query builder makes of
// thousands of values takes longer than the database takes to write them.
import { CompiledQuery, PostgresAdapter } from 'kysely'
import type { Db } from './store.ts'

type Value = string | number | bigint | null

/** Their columns, in the order of the values. */
export type Columns = Readonly<Record<string, 'text' | 'bigint'>>

/** Below the engines' limits on parameters, and few enough different texts to keep them prepared. */
const ROWS_PER_STATEMENT = 100

/** Runs the statement with the rows, in their order; where they are many on an engine that asks for it, several times. */
export async function executeWith<R = unknown>(
  db: Db,
  columns: Columns,
  rows: readonly (readonly Value[])[],
  statement: string,
): Promise<R[]> {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter
  const rowsAtOnce = isPostgres ? rows.length : ROWS_PER_STATEMENT
  const found: R[] = []
  for (let start = 0; start < rows.length; start += rowsAtOnce) {
    const part = rows.slice(start, start + rowsAtOnce)
    const { source, parameters } = isPostgres ? asArrays(columns, part) : asValues(columns, part)
    const text = `with given (${Object.keys(columns).join(', ')}) as (${source}) ${statement}`
    const { rows: more } = await db.executeQuery<R>(CompiledQuery.raw(text, parameters) as CompiledQuery<R>)
    found.push(...more)
  }
  return found
}

/** One parameter a column, however many rows. */
function asArrays(columns: Columns, rows: readonly (readonly Value[])[]) {
  const types = Object.values(columns)
  const arrays = types.map((type, index) => `cast($${index + 1} as ${type}[])`)
  return {
    source: `select * from unnest(${arrays.join(', ')})`,
    parameters: types.map((_, index) => rows.map((row) => row[index])),
  }
}

function asValues(columns: Columns, rows: readonly (readonly Value[])[]) {
  const row = `(${Object.keys(columns).fill('?').join(', ')})`
  return { source: `values ${Array(rows.length).fill(row).join(', ')}`, parameters: rows.flat() }
}
