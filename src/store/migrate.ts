// Brings the schema up to date: migrations are numbered and run forward only.
import { type Kysely, sql } from 'kysely'
import { core } from './migrations/0001-core.ts'
import { keyFeed } from './migrations/0002-key-feed.ts'
import { people } from './migrations/0003-people.ts'
import { nodes } from './migrations/0004-nodes.ts'
import type { Migration, Words } from './migrations/migration.ts'
import type { Store } from './store.ts'
import type { Tables } from './tables.ts'
import { isRace, isUnavailable, Unreachable } from './unavailable.ts'

/** The number of a migration is its place in this list, counted from 1. Append only. */
const migrations: readonly Migration[] = [core, keyFeed, people, nodes]

const words: Record<Store['engine'], Words> = {
  sqlite: { int64: 'integer', strict: ' strict', clustered: ' strict, without rowid' },
  postgres: { int64: 'bigint', strict: '', clustered: '' },
}

const PAUSE_MS = 250

export class SchemaTooNew extends Error {
  override name = 'SchemaTooNew'
}

export interface Patience {
  /** How long to go on trying while the database cannot answer. */
  patienceMs: number
  onWait: (error: unknown) => void
}

/**
 * Brings the schema up to date. Processes that start at once queue at one row and the later ones find nothing left
 * to do. What can pass is waited for: a race to create that row, a long lock, a database that is still starting.
 */
export async function migrate(store: Store, { patienceMs, onWait }: Patience): Promise<void> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    try {
      return await attempt(store)
    } catch (error) {
      const hopeless = error instanceof Unreachable && error.isMisconfigured
      const passing = isRace(error) || (isUnavailable(error) && !hopeless)
      if (!passing || performance.now() > deadline) throw error
      onWait(error)
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  }
}

async function attempt(store: Store): Promise<void> {
  await store.transaction(async (db) => {
    await sql`create table if not exists schema_version (id integer primary key, version integer not null)`.execute(
      db,
    )
  })
  await store.transaction(async (db) => {
    await db
      .insertInto('schema_version')
      .values({ id: 1, version: 0 })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const present = await lockVersion(db)
    if (present > migrations.length)
      throw new SchemaTooNew(
        `The database has schema ${present}, this adit knows schemas up to ${migrations.length}. ` +
          'Run the newer adit that wrote it, or restore a backup from before.',
      )
    for (const migration of migrations.slice(present))
      for (const statement of migration(words[store.engine])) await sql.raw(statement).execute(db)
    if (present < migrations.length)
      await db.updateTable('schema_version').set({ version: migrations.length }).execute()
  })
}

/** Writes the row to itself, which holds it until the transaction ends on every engine. */
async function lockVersion(db: Kysely<Tables>): Promise<number> {
  const { version } = await db
    .updateTable('schema_version')
    .set((row) => ({ version: row.ref('version') }))
    .where('id', '=', 1)
    .returning('version')
    .executeTakeFirstOrThrow()
  return version
}
