// Schema migrations: numbered, forward only. During a rolling update two versions of the program share the
// database, so the schema also records the oldest version that may run on it.
import { type Selectable, sql } from 'kysely'
import { DatabaseUnreachable, isMissingTable, isSchemaRace, isUnavailable } from '../engine/errors.ts'
import { StorageFault } from '../engine/storage-fault.ts'
import type { Db, Store, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { initial } from './initial/index.ts'
import type { EngineSql, Migration } from './migration.ts'

export interface Schema {
  /** The version of a migration is its position in this list, from 1. Append only. */
  migrations: readonly Migration[]
  /**
   * The lowest schema version that a program must know to run on the latest schema. A migration that drops
   * something raises it to the first version whose code did not use that.
   */
  minCompatibleVersion: number
}

export const currentSchema: Schema = { migrations: [initial], minCompatibleVersion: 1 }

const engineSql: Record<Store['engine'], EngineSql> = {
  sqlite: { int64: 'integer', strict: ' strict', clustered: ' strict, without rowid', halfFull: '' },
  postgres: { int64: 'bigint', strict: '', clustered: '', halfFull: ' with (fillfactor = 50)' },
}

/** What creates a schema of this version on SQLite. */
export const sqliteStatements = (version: number): string[] =>
  currentSchema.migrations.slice(0, version).flatMap((migration) => migration(engineSql.sqlite))

const RETRY_MS = 250

/** This program cannot use the database. */
export class IncompatibleSchema extends Error {
  override name = 'IncompatibleSchema'
  readonly reason: string
  readonly remedy: string

  constructor(reason: string, remedy: string) {
    super(`${reason} ${remedy}`)
    this.reason = reason
    this.remedy = remedy
  }
}

export interface MigrateOptions {
  /** How long to retry while the database is unavailable. */
  timeoutMs: number
  onRetry: (error: unknown) => void
  /** Runs in the transaction of the migration. Not called when an empty database gets its schema. */
  onUpgrade: (db: Tx, versions: { from: number; to: number }) => Promise<void>
}

/** A schema that is newer than this program, and allows it to run. */
interface NewerSchema {
  schema: number
  known: number
}

/**
 * Migrates the schema to the latest version. A newer schema that allows this program to run is left alone.
 * Processes that start simultaneously queue on one row lock, and the later ones find nothing to do. Transient
 * errors are retried: a race to create that row, a lock timeout, a database that is still starting.
 */
export async function migrate(
  store: Store,
  { timeoutMs, onRetry, onUpgrade }: MigrateOptions,
  schema = currentSchema,
): Promise<NewerSchema | undefined> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return await attempt(store, onUpgrade, schema)
    } catch (error) {
      const isPermanent =
        (error instanceof DatabaseUnreachable && error.remedy !== undefined) ||
        // For an SQLite file, only a lock held by another process is transient.
        (store.engine === 'sqlite' && error instanceof StorageFault)
      const race = isSchemaRace(error)
      const isTransient = race || (isUnavailable(error) && !isPermanent)
      if (!isTransient || performance.now() > deadline) throw error
      if (!race) onRetry(error)
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    }
  }
}

async function attempt(
  store: Store,
  onUpgrade: MigrateOptions['onUpgrade'],
  schema: Schema,
): Promise<NewerSchema | undefined> {
  const { migrations, minCompatibleVersion } = schema
  // Without a transaction, so that a node starts also while commits hang. An SQLite file must be writable.
  if (store.engine === 'postgres') {
    const { version, known, incompatibility } = await readSchemaState(store.db, schema)
    if (version === known && !incompatibility) return undefined
  }
  await prepare(store)
  return store.transaction(async (db) => {
    const row = await lockVersion(db)
    const { version } = row
    const known = migrations.length
    const incompatibility = findIncompatibility(row, known)
    if (incompatibility) throw incompatibility
    if (version > known) return { schema: version, known }
    for (const migration of migrations.slice(version))
      for (const statement of migration(engineSql[store.engine])) await sql.raw(statement).execute(db)
    if (version < known)
      await db
        .updateTable('schema_version')
        .set({ version: known, min_compatible_version: minCompatibleVersion })
        .execute()
    if (0 < version && version < known) await onUpgrade(db, { from: version, to: known })
    return undefined
  })
}

interface SchemaState {
  /** 0 for a database without tables. */
  version: number
  /** The version that this program migrates to. */
  known: number
  incompatibility: IncompatibleSchema | undefined
}

/** Does not wait for a migration in progress. */
export async function readSchemaState(db: Db, schema = currentSchema): Promise<SchemaState> {
  const known = schema.migrations.length
  const row = await findVersion(db)
  return {
    version: row?.version ?? 0,
    known,
    incompatibility: row && findIncompatibility(row, known),
  }
}

export type VersionRow = Selectable<Tables['schema_version']>

/** Databases from before the first release have other version numbers, and lack a column. */
export const findUnreleased = (row: object): IncompatibleSchema | undefined =>
  'min_compatible_version' in row
    ? undefined
    : new IncompatibleSchema(
        'The database was created by an adit from before the first release, and cannot be upgraded.',
        'Set ADIT_DATABASE_URL to a new database, or move the SQLite file away, and start again.',
      )

/** Why a program that knows versions up to `known` cannot use the database. */
export function findIncompatibility(row: VersionRow, known: number): IncompatibleSchema | undefined {
  const unreleased = findUnreleased(row)
  if (unreleased) return unreleased
  const { version, min_compatible_version: minCompatibleVersion } = row
  if (version > known && minCompatibleVersion > known)
    return new IncompatibleSchema(
      `The database has schema version ${version}; this adit supports versions up to ${known}.`,
      'Run the newer adit that migrated it, or restore a backup from before the upgrade.',
    )
  return undefined
}

/**
 * `schema_version` is created outside the migrations, and no migration alters it: an ALTER would deadlock
 * with the processes that queue on its row.
 */
async function prepare(store: Store): Promise<void> {
  // A role that may not create tables can use those that exist.
  if (await findVersion(store.db)) return
  await store.transaction(async (db) => {
    await sql`create table if not exists schema_version (
      id integer primary key,
      version integer not null,
      min_compatible_version integer not null
    )`.execute(db)
    if (await readVersion(db)) return
    await db
      .insertInto('schema_version')
      .values({ id: 1, version: 0, min_compatible_version: 0 })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  })
}

const readVersion = (db: Db) => db.selectFrom('schema_version').selectAll().executeTakeFirst()

const findVersion = (db: Db) =>
  readVersion(db).catch((error) => {
    if (!isMissingTable(error)) throw error
    return undefined
  })

/** An update without change locks the row on both engines. */
const lockVersion = (db: Tx): Promise<VersionRow> =>
  db
    .updateTable('schema_version')
    .set((row) => ({ version: row.ref('version') }))
    .where('id', '=', 1)
    .returningAll()
    .executeTakeFirstOrThrow()
