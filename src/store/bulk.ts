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

/** Transactions on PostgreSQL whose tables are not distributed. */
const unsharded = new WeakSet<Db>()

/** What only Citus needs is left out of the statements of this transaction: it doubles their cost. */
export const omitShards = (db: Tx) => unsharded.add(db)

const needsShards = (db: Db) => isPostgres(db) && !unsharded.has(db)

/**
 * Restricts a statement on PostgreSQL to the workspaces of the input, whose first column they are. On Citus the
 * statement is then sent to their shard only. The collation keeps the planner from using the condition to
 * search the index: it would do so once for each workspace and row.
 */
export const inWorkspaces = (db: Db, table: string) =>
  needsShards(db) ? `and ${table}.workspace_id = any(cast($1 as text[]) collate "C")` : ''

/**
 * Inserts rows that may exist. Their order must be the same in all transactions. On Citus with one parameter for
 * each value: rows of an array would first be collected on the coordinator.
 */
export async function insertBulk(
  db: Tx,
  table: keyof Tables,
  columns: Columns,
  rows: readonly Row[],
  onConflict = 'do nothing',
): Promise<void> {
  const insert = `insert into ${table} (${Object.keys(columns).join(', ')})`
  for (const batch of batches(db, rows)) {
    const { source, parameters } =
      isPostgres(db) && !needsShards(db) ? asArrays(columns, batch) : asValues(columns, batch, isPostgres(db))
    await db.executeQuery(CompiledQuery.raw(`${insert} ${source} on conflict ${onConflict}`, parameters))
  }
}

export interface Written {
  key: Columns
  values: Columns
  /** The new value of a column; without one it is replaced. */
  changes?: Readonly<Record<string, (stored: string, input: string) => string>>
}

/**
 * Changes rows in the given order, which must be the same in all transactions, and returns how many there were.
 * Rows that do not exist are inserted. On Citus they are left out, and the rows are selected from the table
 * itself: so the whole statement is executed on their shard, and each row is found by the primary key. An
 * UPDATE would lock rows in the order of its plan.
 */
export async function writeBulk(
  db: Tx,
  table: keyof Tables,
  { key, values, changes = {} }: Written,
  rows: readonly Row[],
): Promise<number> {
  if (rows.length === 0) return 0
  const columns = { ...key, ...values }
  const set = Object.keys(values).map((column) => {
    const [stored, input] = [`${table}.${column}`, `excluded.${column}`]
    return `${column} = ${changes[column]?.(stored, input) ?? input}`
  })
  const onConflict = `(${Object.keys(key).join(', ')}) do update set ${set.join(', ')}`
  if (!needsShards(db)) {
    await insertBulk(db, table, columns, rows, onConflict)
    return rows.length
  }
  const { unnest, parameters } = asArrays(columns, rows)
  const names = Object.keys(columns).join(', ')
  const selected = [
    ...Object.keys(key).map((column) => `found.${column}`),
    ...Object.keys(values).map((column) => `input.${column}`),
  ]
  const text = `insert into ${table} (${names})
    select ${selected.join(', ')} from ${unnest} as input (${names}) cross join lateral (
      select * from ${table} as stored where ${matches(key)} ${inWorkspaces(db, 'stored')} offset 0
    ) as found where true
    on conflict ${onConflict}`
  return Number((await db.executeQuery(CompiledQuery.raw(text, parameters))).numAffectedRows)
}

/** Condition that joins a stored row and its input. */
const matches = (key: Columns) =>
  Object.keys(key)
    .map((column) => `stored.${column} = input.${column}`)
    .join(' and ')

export const deleteBulk = (db: Tx, table: keyof Tables, columns: Columns, rows: readonly Row[]) =>
  executeBulk(
    db,
    columns,
    rows,
    `delete from ${table} where (${Object.keys(columns).join(', ')}) in (select * from input)
     ${inWorkspaces(db, table)}`,
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
  return isPostgres(db)
    ? lockOnPostgres(db, table, { key, keys, columns })
    : readOnSqlite(db, table, { key, keys, columns })
}

interface LockInput {
  key: Columns
  keys: readonly Row[]
  columns: readonly string[]
}

/**
 * The lateral subquery looks up one key after the other; a join may scan the table. All values of a column
 * are returned as one text: that is much cheaper than a row for each key.
 */
async function lockOnPostgres(db: Tx, table: string, { key, keys, columns }: LockInput) {
  const { unnest, parameters } = asArrays(key, keys)
  const lists = ['position', ...columns].map(
    (column) => `string_agg(coalesce(cast(${column} as text), ''), '${SEPARATOR}') as ${column}`,
  )
  const text = `select ${lists.join(', ')} from (
    select input.position, stored.*
    from ${unnest} with ordinality as input (${Object.keys(key).join(', ')}, position)
    cross join lateral (
      select ${columns.join(', ')} from ${table} as stored
      where ${matches(key)} ${inWorkspaces(db, 'stored')} for update
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
async function readOnSqlite(db: Tx, table: string, { key, keys, columns }: LockInput) {
  const values = columns.map((column) => `cast(stored.${column} as text) as ${column}`)
  const rows = await executeBulk<Record<string, string | null>>(
    db,
    key,
    keys,
    `select ${values.join(', ')} from input left join ${table} as stored on ${matches(key)}`,
  )
  return columns.map((column) => rows.map((row) => row[column] ?? undefined))
}

export const isPostgres = (db: Db) => db.getExecutor().adapter instanceof PostgresAdapter

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
function asValues(columns: Columns, rows: readonly Row[], isNumbered = false) {
  const names = Object.keys(columns)
  const parameters: Value[] = []
  for (const values of rows) parameters.push(...values)
  const tuple = `(${names.fill('?').join(', ')})`
  const source = `values ${Array(rows.length).fill(tuple).join(', ')}`
  let count = 0
  return { source: isNumbered ? source.replaceAll('?', () => `$${++count}`) : source, parameters }
}
