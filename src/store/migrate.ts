// Brings the schema up to date: migrations are numbered and run forward only. During an update of many nodes, programs of
// two versions share the database, so it also says which programs may still run on it.
import { type Kysely, sql } from 'kysely'
import { DatabaseUnreachable, isRace, isUnavailable } from './db-errors.ts'
import { core } from './migrations/0001-core.ts'
import { keyFeed } from './migrations/0002-key-feed.ts'
import { users } from './migrations/0003-users.ts'
import { nodes } from './migrations/0004-nodes.ts'
import { usageByArrival } from './migrations/0005-usage-by-arrival.ts'
import { activeRows } from './migrations/0006-active-rows.ts'
import { auditDetails } from './migrations/0007-audit-details.ts'
import type { Migration, Words } from './migrations/migration.ts'
import { StorageFault } from './storage-fault.ts'
import type { Store } from './store.ts'
import type { Tables } from './tables.ts'

/** The number of a migration is its place in this list, counted from 1. Append only. */
const migrations: readonly Migration[] = [
  core,
  keyFeed,
  users,
  nodes,
  usageByArrival,
  activeRows,
  auditDetails,
]

/**
 * The lowest schema that a program must know to run on the one that this list makes. A migration that takes away what older
 * programs use raises it to the first schema whose program does without.
 */
const OLDEST_PROGRAM = 4

const words: Record<Store['engine'], Words> = {
  sqlite: { int64: 'integer', strict: ' strict', clustered: ' strict, without rowid' },
  postgres: { int64: 'bigint', strict: '', clustered: '' },
}

const PAUSE_MS = 250

export class SchemaTooNew extends Error {
  override name = 'SchemaTooNew'
}

export interface RetryOptions {
  /** How long to go on trying while the database cannot answer. */
  patienceMs: number
  onWait: (error: unknown) => void
}

/** Where the database is ahead of this program. */
export interface NewerSchema {
  schema: number
  known: number
}

/**
 * Brings the schema up to date, or leaves it alone where it is ahead of this program and this program may run on it.
 * Processes that start at once queue at one row and the later ones find nothing left to do. What can pass is waited for: a
 * race to create that row, a long lock, a database that is still starting.
 */
export async function migrate(
  store: Store,
  { patienceMs, onWait }: RetryOptions,
): Promise<NewerSchema | undefined> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    try {
      return await attempt(store)
    } catch (error) {
      const hopeless =
        (error instanceof DatabaseUnreachable && error.isMisconfigured) ||
        // The file is here already: only another process that holds it is worth waiting for.
        (store.engine === 'sqlite' && error instanceof StorageFault)
      const race = isRace(error)
      const passing = race || (isUnavailable(error) && !hopeless)
      if (!passing || performance.now() > deadline) throw error
      if (!race) onWait(error)
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
}

async function attempt(store: Store): Promise<NewerSchema | undefined> {
  await prepare(store)
  return store.transaction(async (db) => {
    const { version, oldest_program: oldest } = await lockVersion(db)
    const known = migrations.length
    if (version > known) {
      // 0: nobody said which programs may.
      if (oldest === 0 || known < oldest) throw tooNew(version, known)
      return { schema: version, known }
    }
    for (const migration of migrations.slice(version))
      for (const statement of migration(words[store.engine])) await sql.raw(statement).execute(db)
    if (version < known)
      await db.updateTable('schema_version').set({ version: known, oldest_program: OLDEST_PROGRAM }).execute()
    return undefined
  })
}

/**
 * The table that counts the migrations is none of them, and altered by none of them: who alters a table waits for those who
 * wait at its row, and they for the one who holds it.
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
    // Made by a program that could not share its database with newer ones.
    if (row && !('oldest_program' in row))
      await sql`alter table schema_version add column oldest_program integer not null default 0`.execute(db)
  })
}

const tooNew = (version: number, known: number) =>
  new SchemaTooNew(
    `The database has schema ${version}, which this adit cannot run on: it knows schemas up to ${known}. ` +
      'Run the newer adit that wrote it, or restore a backup from before.',
  )

/** Writes the row to itself, which holds it until the transaction ends on every engine. */
const lockVersion = (db: Kysely<Tables>) =>
  db
    .updateTable('schema_version')
    .set((row) => ({ version: row.ref('version') }))
    .where('id', '=', 1)
    .returning(['version', 'oldest_program'])
    .executeTakeFirstOrThrow()
