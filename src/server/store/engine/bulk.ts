// Statements over many rows. They are built by hand, because the query builder takes longer to compile
// thousands of values than the database takes to write them.
import { CompiledQuery, PostgresAdapter, type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

type Value = string | number | bigint | null
type Row = readonly Value[]

/** Column names and types, in the order of the values. */
type Columns = Readonly<Record<string, 'text' | 'bigint'>>

/** A fixed number of rows on SQLite, so that few different statements are prepared and cached. */
const SQLITE_BATCH_ROWS = 100
/** Limit of PostgreSQL for one statement. */
const PARAMETERS_MAX = 65_535
/** Joins values; neither a number nor an encoded hour contains it. */
const SEPARATOR = ','

/** A transaction on the usage tables. */
export interface UsageTx {
  db: Tx
  /** Whether Citus has distributed the tables. Statements that work on Citus cost twice as much elsewhere. */
  isDistributed: boolean
}

function* batches<T>(items: readonly T[], size: number): Generator<readonly T[]> {
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
  const isOnPostgres = isPostgres(db)
  for (const batch of batches(rows, isOnPostgres ? rows.length : SQLITE_BATCH_ROWS)) {
    const { source, parameters } = isOnPostgres ? asArrays(columns, batch) : asValues(columns, batch)
    const text = `with input (${Object.keys(columns).join(', ')}) as (${source}) ${statement}`
    results.push((await db.executeQuery(CompiledQuery.raw(text, parameters))).rows as R[])
  }
  return results.flat()
}

/**
 * A condition that makes Citus send the statement to one shard. It repeats the workspace ids of the input,
 * which are the first parameter. Without the collation, the planner would search the index for all of these
 * ids once for each row of the input.
 */
export const inWorkspaces = ({ isDistributed }: Pick<UsageTx, 'isDistributed'>, table: string) =>
  isDistributed ? `and ${table}.workspace_id = any(cast($1 as text[]) collate "C")` : ''

/**
 * Inserts rows unless they exist. All transactions must use the same order. If the table is distributed, each
 * value is a parameter, because Citus would first collect the rows of an array on the coordinator.
 */
export async function insertBulk(
  { db, isDistributed }: UsageTx,
  table: keyof Tables,
  columns: Columns,
  rows: readonly Row[],
  onConflict = 'do nothing',
): Promise<void> {
  const insert = `insert into ${table} (${Object.keys(columns).join(', ')})`
  const isOnPostgres = isPostgres(db)
  const usesArrays = isOnPostgres && !isDistributed
  const valuesMax = isOnPostgres
    ? Math.floor(PARAMETERS_MAX / Object.keys(columns).length)
    : SQLITE_BATCH_ROWS
  for (const batch of batches(rows, usesArrays ? rows.length : valuesMax)) {
    const { source, parameters } = usesArrays
      ? asArrays(columns, batch)
      : asValues(columns, batch, isOnPostgres)
    await db.executeQuery(CompiledQuery.raw(`${insert} ${source} on conflict ${onConflict}`, parameters))
  }
}

interface Written {
  key: Columns
  values: Columns
  /** SQL for the new value of a column; other columns are replaced. */
  changes?: Readonly<Record<string, (stored: string, input: string) => string>>
  /**
   * Condition on the stored row and `excluded` for writing a row. Ignored if the table is distributed, where
   * the number of written rows has to be that of existing rows.
   */
  isChange?: string
}

/**
 * Changes rows in the order of the input, which must be the same in all transactions, and returns how many
 * were changed. It is an INSERT with a conflict, because an UPDATE would lock rows in the order of its plan.
 *
 * Rows that do not exist are inserted, or skipped if the table is distributed: then the rows are selected
 * from the table itself, because Citus executes INSERT … SELECT on one shard only if both use the same table.
 */
export async function writeBulk(
  tx: UsageTx,
  table: keyof Tables,
  { key, values, changes = {}, isChange }: Written,
  rows: readonly Row[],
): Promise<number> {
  if (rows.length === 0) return 0
  const columns = { ...key, ...values }
  const set = Object.keys(values).map((column) => {
    const [stored, input] = [`${table}.${column}`, `excluded.${column}`]
    return `${column} = ${changes[column]?.(stored, input) ?? input}`
  })
  const onConflict = `(${Object.keys(key).join(', ')}) do update set ${set.join(', ')}`
  if (!tx.isDistributed) {
    await insertBulk(tx, table, columns, rows, isChange ? `${onConflict} where ${isChange}` : onConflict)
    return rows.length
  }
  const { unnest, parameters } = asArrays(columns, rows)
  const names = Object.keys(columns).join(', ')
  const selected = [
    ...Object.keys(key).map((column) => `found.${column}`),
    ...Object.keys(values).map((column) => `input.${column}`),
  ]
  // `offset 0` keeps the planner from turning the lookups by the primary key into a join that scans the
  // table.
  const text = `insert into ${table} (${names})
    select ${selected.join(', ')} from ${unnest} as input (${names}) cross join lateral (
      select * from ${table} as stored where ${matches(key)} ${inWorkspaces(tx, 'stored')} offset 0
    ) as found
    on conflict ${onConflict}`
  return Number((await tx.db.executeQuery(CompiledQuery.raw(text, parameters))).numAffectedRows)
}

/** Condition that joins a stored row and its input. */
const matches = (key: Columns) =>
  Object.keys(key)
    .map((column) => `stored.${column} = input.${column}`)
    .join(' and ')

export const deleteBulk = (tx: UsageTx, table: keyof Tables, columns: Columns, rows: readonly Row[]) =>
  executeBulk(
    tx.db,
    columns,
    rows,
    `delete from ${table} where (${Object.keys(columns).join(', ')}) in (select * from input)
     ${inWorkspaces(tx, table)}`,
  )

/**
 * Locks the rows with these keys, in the order of the keys, and reads some columns. Returns for each column
 * an array with the text for each key: undefined if there is no such row; undefined or empty for null. Reads
 * only these rows, by the primary key.
 */
export async function lockBulk(
  tx: UsageTx,
  table: keyof Tables,
  key: Columns,
  keys: readonly Row[],
  columns: readonly string[],
): Promise<(string | undefined)[][]> {
  if (keys.length === 0) return columns.map(() => [])
  return isPostgres(tx.db)
    ? lockOnPostgres(tx, table, { key, keys, columns })
    : readOnSqlite(tx.db, table, { key, keys, columns })
}

interface LockInput {
  key: Columns
  keys: readonly Row[]
  columns: readonly string[]
}

/**
 * The lateral subquery looks up one key after the other, while a join may scan the table. All values of a
 * column are returned as one text, which is much cheaper than a row for each key.
 */
async function lockOnPostgres(tx: UsageTx, table: string, { key, keys, columns }: LockInput) {
  const { unnest, parameters } = asArrays(key, keys)
  const lists = ['position', ...columns].map(
    (column) => `string_agg(coalesce(cast(${column} as text), ''), '${SEPARATOR}') as ${column}`,
  )
  const text = `select ${lists.join(', ')} from (
    select input.position, stored.*
    from ${unnest} with ordinality as input (${Object.keys(key).join(', ')}, position)
    cross join lateral (
      select ${columns.join(', ')} from ${table} as stored
      where ${matches(key)} ${inWorkspaces(tx, 'stored')} for update
    ) as stored
  ) as found`
  const { rows } = await tx.db.executeQuery(CompiledQuery.raw(text, parameters))
  const [row] = rows as Record<string, string>[]
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

/** Condition that a column has one of the values, which are one parameter made by `listParameter`. */
export const isOneOf = (db: Db, column: string, list: unknown): RawBuilder<SqlBool> =>
  isPostgres(db)
    ? sql`${sql.ref(column)} = any(cast(${list} as text[]))`
    : sql`${sql.ref(column)} in (select value from json_each(${list}))`

export const listParameter = (db: Db, values: readonly string[]): string =>
  isPostgres(db)
    ? arrayLiteral(
        'text',
        values.map((value) => [value]),
        0,
      )
    : JSON.stringify(values)

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

/** The driver's own conversion of arrays takes twice as long. */
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
