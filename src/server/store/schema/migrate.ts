// Schema migrations: numbered, forward only. During a rolling update two versions of the program share the
// database, so the schema also records the oldest version that may run on it.
import { type Kysely, sql } from 'kysely'
import { DatabaseUnreachable, isMissingTable, isRace, isUnavailable } from '../engine/errors.ts'
import { StorageFault } from '../engine/storage-fault.ts'
import type { Db, Store, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { core } from './migrations/0001-core.ts'
import { keyFeed } from './migrations/0002-key-feed.ts'
import { users } from './migrations/0003-users.ts'
import { nodes } from './migrations/0004-nodes.ts'
import { usageByArrival } from './migrations/0005-usage-by-arrival.ts'
import { activeRows } from './migrations/0006-active-rows.ts'
import { auditDetails } from './migrations/0007-audit-details.ts'
import { usageHours } from './migrations/0008-usage-hours.ts'
import { retention } from './migrations/0009-retention.ts'
import { tunnels } from './migrations/0010-tunnels.ts'
import { keyExpiry } from './migrations/0011-key-expiry.ts'
import { workspacePolicy } from './migrations/0012-workspace-policy.ts'
import { auditExport } from './migrations/0013-audit-export.ts'
import { keyLineage } from './migrations/0014-key-lineage.ts'
import { deviceAuthorizations } from './migrations/0015-device-authorizations.ts'
import { tunnelAccess } from './migrations/0016-tunnel-access.ts'
import { archive } from './migrations/0017-archive.ts'
import { notices } from './migrations/0018-notices.ts'
import { webhooks } from './migrations/0019-webhooks.ts'
import { quotas } from './migrations/0020-quotas.ts'
import { alerts } from './migrations/0021-alerts.ts'
import { tcpPorts } from './migrations/0022-tcp-ports.ts'
import { edgeWorkspaces } from './migrations/0023-edge-workspaces.ts'
import type { EngineSql, Migration } from './migrations/migration.ts'

/** A migration's version is its position in this list, from 1. Append only. */
const migrations: readonly Migration[] = [
  core,
  keyFeed,
  users,
  nodes,
  usageByArrival,
  activeRows,
  auditDetails,
  usageHours,
  retention,
  tunnels,
  keyExpiry,
  workspacePolicy,
  auditExport,
  keyLineage,
  deviceAuthorizations,
  tunnelAccess,
  archive,
  notices,
  webhooks,
  quotas,
  alerts,
  tcpPorts,
  edgeWorkspaces,
]

/**
 * The lowest schema version a program must know to run on the latest schema. A migration that drops what
 * older programs use raises it to the first version whose program no longer uses it.
 */
const MIN_COMPATIBLE_VERSION = 4

const engineSql: Record<Store['engine'], EngineSql> = {
  sqlite: { int64: 'integer', strict: ' strict', clustered: ' strict, without rowid' },
  postgres: { int64: 'bigint', strict: '', clustered: '' },
}

const RETRY_MS = 250

export class SchemaTooNew extends Error {
  override name = 'SchemaTooNew'
}

export interface MigrateOptions {
  /** How long to retry while the database is unavailable. */
  timeoutMs: number
  onRetry: (error: unknown) => void
  /** Runs in the transaction of the migration, except for that of an empty database. */
  onUpgrade: (db: Tx, versions: { from: number; to: number }) => Promise<void>
}

/** The database has a newer schema than this program knows, and allows it to run. */
export interface NewerSchema {
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
): Promise<NewerSchema | undefined> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    try {
      return await attempt(store, onUpgrade)
    } catch (error) {
      const isPermanent =
        (error instanceof DatabaseUnreachable && error.isMisconfigured) ||
        // For an SQLite file, only a lock held by another process is transient.
        (store.engine === 'sqlite' && error instanceof StorageFault)
      const race = isRace(error)
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
): Promise<NewerSchema | undefined> {
  await prepare(store)
  return store.transaction(async (db) => {
    const { version, oldest_program: oldest } = await lockVersion(db)
    const known = migrations.length
    if (!isCompatible(version, oldest)) throw tooNew(version, known)
    if (version > known) return { schema: version, known }
    for (const migration of migrations.slice(version))
      for (const statement of migration(engineSql[store.engine])) await sql.raw(statement).execute(db)
    if (version < known)
      await db
        .updateTable('schema_version')
        .set({ version: known, oldest_program: MIN_COMPATIBLE_VERSION })
        .execute()
    if (0 < version && version < known) await onUpgrade(db, { from: version, to: known })
    return undefined
  })
}

export interface SchemaState {
  /** 0 for a database without tables. */
  version: number
  /** The version that this program migrates to. */
  known: number
  /** False if a newer schema does not allow this program to run. */
  isCompatible: boolean
}

/** Changes nothing, and waits for no migration that is under way. */
export async function readSchemaState(db: Db): Promise<SchemaState> {
  const known = migrations.length
  const row = await db
    .selectFrom('schema_version')
    .selectAll()
    .executeTakeFirst()
    .catch((error) => {
      if (!isMissingTable(error)) throw error
    })
  const version = row?.version ?? 0
  return { version, known, isCompatible: isCompatible(version, row?.oldest_program) }
}

/** 0: written by a version that did not record compatibility. */
const isCompatible = (version: number, oldest = 0) =>
  version <= migrations.length || (oldest !== 0 && migrations.length >= oldest)

/**
 * `schema_version` is created outside the migrations, and no migration alters it: an ALTER would deadlock
 * with the processes that queue on its row.
 */
async function prepare(store: Store): Promise<void> {
  await store.transaction(async (db) => {
    await sql`create table if not exists schema_version (
      id integer primary key,
      version integer not null,
      oldest_program integer not null default 0
    )`.execute(db)
    await sql`insert into schema_version (id, version) values (1, 0) on conflict do nothing`.execute(db)
  })
  await store.transaction(async (db) => {
    const row = await db.selectFrom('schema_version').selectAll().executeTakeFirst()
    // Created by a version without rolling updates.
    if (row && !('oldest_program' in row))
      await sql`alter table schema_version add column oldest_program integer not null default 0`.execute(db)
  })
}

const tooNew = (version: number, known: number) =>
  new SchemaTooNew(
    `The database has schema version ${version}; this adit supports versions up to ${known}. ` +
      'Run the newer adit that migrated it, or restore a backup from before the upgrade.',
  )

/** An update without change locks the row on both engines. */
const lockVersion = (db: Kysely<Tables>) =>
  db
    .updateTable('schema_version')
    .set((row) => ({ version: row.ref('version') }))
    .where('id', '=', 1)
    .returning(['version', 'oldest_program'])
    .executeTakeFirstOrThrow()
