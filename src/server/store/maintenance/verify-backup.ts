// Verifies a backup: that SQLite can read all of it, that this program can use it, and that its rows agree.
import { existsSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { readHeader, requireRegularFile } from '../engine/sqlite/file.ts'
import { currentSchema, findIncompatibility, sqliteStatements } from '../schema/migrate.ts'
import { BackupError, checkIntegrity, readSchema } from './backup.ts'

const counted = ['workspaces', 'users', 'api_keys', 'edges', 'usage_days'] as const

interface VerifiedBackup {
  bytes: number
  schema: number
  rows: Record<(typeof counted)[number], number>
}

/** Throws a BackupError with the first problem. Blocks until all of the file is read. */
export function verifyBackup(file: string): VerifiedBackup {
  if (!existsSync(file)) throw new BackupError(`${file} does not exist.`)
  requireRegularFile(file)
  // Before SQLite opens the file, which would create others beside it.
  if (readHeader(file)?.hasWal) throw unusable(NOT_A_BACKUP)
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const { version } = readCompatibleSchema(database)
    const problem = findDamage(database) ?? findMissing(database, version) ?? findContradiction(database)
    if (problem) throw unusable(problem)
    const rows = counted.map((table) => [table, countRows(database, table)])
    return { bytes: statSync(file).size, schema: version, rows: Object.fromEntries(rows) }
  } finally {
    database.close()
  }
}

const unusable = (problem: string) =>
  new BackupError(`${problem} Do not restore this file. Verify an earlier backup, and make a new one.`)

const NOT_A_BACKUP =
  'The file is a copy of a database, not a backup of `adit admin backup`: edges would not clear their ' +
  'caches after a restore.'

function readCompatibleSchema(database: DatabaseSync) {
  const row = readSchema(database)
  const incompatibility = findIncompatibility(row, currentSchema.migrations.length)
  if (incompatibility) throw new BackupError(incompatibility.message)
  return row
}

/** Damage may also make the check itself fail. */
function findDamage(database: DatabaseSync): string | undefined {
  try {
    const result = checkIntegrity(database)
    if (result !== 'ok') return `The file is damaged: ${result}.`
    const orphan = database.prepare('pragma foreign_key_check').get()
    return (
      orphan && `The file is damaged: a row of ${orphan.table} refers to a missing row of ${orphan.parent}.`
    )
  } catch (error) {
    return `The file is damaged: ${(error as Error).message}.`
  }
}

/** Compares the file with a new database of the same schema, if this program knows it. */
function findMissing(database: DatabaseSync, version: number): string | undefined {
  if (version > currentSchema.migrations.length) return undefined
  const created = new DatabaseSync(':memory:')
  try {
    for (const statement of sqliteStatements(version)) created.exec(statement)
    const existing = new Set(listSchema(database).map(({ name }) => name))
    for (const { type, name } of listSchema(created)) {
      if (!existing.has(name)) return `The file has no ${type} ${name}.`
      if (type === 'table' && countRows(created, name) > 0 && countRows(database, name) === 0)
        return `The table ${name} has lost its row.`
    }
    return undefined
  } finally {
    created.close()
  }
}

const listSchema = (database: DatabaseSync) =>
  database.prepare('select type, name from sqlite_schema').all() as { type: string; name: string }[]

function findContradiction(database: DatabaseSync): string | undefined {
  if (countRows(database, 'change_log') + countRows(database, 'nodes') > 0) return NOT_A_BACKUP
  const wrong = database.prepare(WRONG_TOTAL).get()
  return (
    wrong &&
    `The usage of workspace ${wrong.workspace_id} on ${new Date(Number(wrong.day)).toISOString().slice(0, 10)} ` +
      'is not the sum of what edges have reported.'
  )
}

/** A day before the floor may have lost some of its counters: retention deletes them. */
const WRONG_TOTAL = `
  select reported.workspace_id, reported.day from (
    select workspace_id, day, sum(requests) as requests, sum(bytes_in) as bytes_in,
      sum(bytes_out) as bytes_out, sum(events) as events
    from usage_counters where day >= (select usage_floor from maintenance where id = 1)
    group by workspace_id, day
  ) as reported
  left join usage_days as total on total.workspace_id = reported.workspace_id and total.day = reported.day
  where (total.requests, total.bytes_in, total.bytes_out, total.events)
    is not (reported.requests, reported.bytes_in, reported.bytes_out, reported.events)
  limit 1`

const countRows = (database: DatabaseSync, table: string) =>
  Number(database.prepare(`select count(*) as count from ${table}`).get()?.count)
