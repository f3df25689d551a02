// Statements over many rows. Built by hand: compiling thousands of values with the query builder takes longer
// than writing them.
import { CompiledQuery, PostgresAdapter } from 'kysely'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

type Value = string | number | bigint | null
export type Row = readonly Value[]

/** Column names and types, in the order of the values. */
export type Columns = Readonly<Record<string, 'text' | 'bigint'>>

/** Small enough to stay in the page cache between statements, and to cache the prepared statements. */
const BATCH_ROWS = 100
/** In no number and no encoded hour, so values are joined with it. */
const SEPARATOR = ','

/** PostgreSQL takes all rows in one batch; SQLite limits the parameters of a statement. */
function* batches<T>(db: Db, items: readonly T[]): Generator<readonly T[]> {
  const size = isPostgres(db) ? items.length : BATCH_ROWS
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

/** Runs the statement once for each batch, with the rows as the table `input`. */
export async function executeBulk<R>(
  db: Db,
  columns: Columns,
  rows: readonly Row[],
  statement: string,
): Promise<R[]> {
  const results: R[][] = []
  for (const batch of batches(db, rows)) {
    const { source, parameters } = isPostgres(db) ? asArrays(columns, batch) : asValues(columns, batch)
    const text = `with input (${Object.keys(columns).join(', ')}) as (${source}) ${statement}`
    results.push((await db.executeQuery(CompiledQuery.raw(text, parameters))).rows as R[])
  }
  return results.flat()
}

/** Inserts in the order of the rows, which must be the same in all transactions: conflicting rows are locked. */
export const insertBulk = (
  db: Tx,
  table: keyof Tables,
  columns: Columns,
  rows: readonly Row[],
  onConflict: string,
) =>
  executeBulk(
    db,
    columns,
    rows,
    `insert into ${table} (${Object.keys(columns).join(', ')}) select * from input where true ${onConflict}`,
  )

export const deleteBulk = (db: Tx, table: keyof Tables, columns: Columns, rows: readonly Row[]) =>
  executeBulk(
    db,
    columns,
    rows,
    `delete from ${table} where (${Object.keys(columns).join(', ')}) in (select * from input)`,
  )

/**
 * Reads columns of the rows with these keys, and locks them in the order of the keys. Returns an array for
 * each column, with the values as text, aligned with the keys: undefined if there is no such row, and undefined
 * or empty if the value is null. Reads only those rows, by the primary key.
 */
export async function lockBulk(
  db: Tx,
  table: keyof Tables,
  key: Columns,
  keys: readonly Row[],
  columns: readonly string[],
): Promise<(string | undefined)[][]> {
  if (keys.length === 0) return columns.map(() => [])
  const isRow = Object.keys(key)
    .map((column) => `stored.${column} = input.${column}`)
    .join(' and ')
  return isPostgres(db)
    ? lockOnPostgres(db, table, { key, keys, columns, isRow })
    : readOnSqlite(db, table, { key, keys, columns, isRow })
}

interface LockInput {
  key: Columns
  keys: readonly Row[]
  columns: readonly string[]
  /** Condition that joins a stored row and its key. */
  isRow: string
}

/**
 * The lateral subquery looks up one key after the other; a join may scan the table. All values of a column
 * are returned as one text: that is much cheaper than a row for each key.
 */
async function lockOnPostgres(db: Tx, table: string, { key, keys, columns, isRow }: LockInput) {
  const { unnest, parameters } = asArrays(key, keys)
  const lists = ['position', ...columns].map(
    (column) => `string_agg(coalesce(cast(${column} as text), ''), '${SEPARATOR}') as ${column}`,
  )
  const text = `select ${lists.join(', ')} from (
    select input.position, stored.*
    from ${unnest} with ordinality as input (${Object.keys(key).join(', ')}, position)
    cross join lateral (
      select ${columns.join(', ')} from ${table} as stored where ${isRow} for update
    ) as stored
  ) as found`
  const [row] = (await db.executeQuery(CompiledQuery.raw(text, parameters))).rows as Record<string, string>[]
  if (!row?.position) return columns.map(() => Array<undefined>(keys.length).fill(undefined))
  const positions = row.position.split(SEPARATOR)
  return columns.map((column) => {
    const found = (row[column] as string).split(SEPARATOR)
    if (found.length === keys.length) return found
    const aligned = Array<string | undefined>(keys.length).fill(undefined)
    for (const [index, value] of found.entries()) aligned[Number(positions[index]) - 1] = value
    return aligned
  })
}

/** A transaction on SQLite is the only writer, so nothing needs a lock. */
async function readOnSqlite(db: Tx, table: string, { key, keys, columns, isRow }: LockInput) {
  const values = columns.map((column) => `cast(stored.${column} as text) as ${column}`)
  const rows = await executeBulk<Record<string, string | null>>(
    db,
    key,
    keys,
    `select ${values.join(', ')} from input left join ${table} as stored on ${isRow}`,
  )
  return columns.map((column) => rows.map((row) => row[column] ?? undefined))
}

const isPostgres = (db: Db) => db.getExecutor().adapter instanceof PostgresAdapter

/** One parameter per column. */
function asArrays(columns: Columns, rows: readonly Row[]) {
  const types = Object.values(columns)
  const arrays = types.map((type, index) => `cast($${index + 1} as ${type}[])`)
  const unnest = `unnest(${arrays.join(', ')})`
  return {
    unnest,
    source: `select * from ${unnest}`,
    parameters: types.map((type, index) => arrayLiteral(type, rows, index)),
  }
}

/** Written here because the driver's general conversion of arrays takes twice as long. */
function arrayLiteral(type: Columns[string], rows: readonly Row[], column: number): string {
  let text = ''
  for (const row of rows) {
    const value = row[column] as Value
    if (text !== '') text += ','
    text += value === null ? 'null' : type === 'bigint' ? value : quote(value as string)
  }
  return `{${text}}`
}

const quote = (text: string) => `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`

/** One parameter per value. */
function asValues(columns: Columns, rows: readonly Row[]) {
  const row = `(${Object.keys(columns).fill('?').join(', ')})`
  const parameters: Value[] = []
  for (const values of rows) parameters.push(...values)
  return { source: `values ${Array(rows.length).fill(row).join(', ')}`, parameters }
}
