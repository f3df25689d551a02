// Checks the database: whether it can be used, its version, settings and schema, and the nodes and edges in
// it. Opens it without migrating or creating it.
import { existsSync } from 'node:fs'
import { lazy } from '../../lib/lazy.ts'
import type { Config } from '../config/server.ts'
import { explainDatabaseError, openUnchanged } from '../services.ts'
import type { Store } from '../store/engine/store.ts'
import { readPostgresFacts, readSqliteVersion, readStandbys } from '../store/maintenance/diagnostics.ts'
import { readSchemaState, type Schema } from '../store/schema/migrate.ts'
import { type Check, type Finding, ok, problem, skipped, warning } from './check.ts'
import { checkEdges } from './edges.ts'
import { checkClock, checkNodes } from './nodes.ts'
import { postgresFindings } from './postgres-settings.ts'
import { replicationFindings } from './replication.ts'

/** Invalid settings are undefined. */
export function databaseChecks(
  settings: Partial<Pick<Config, 'database' | 'workers' | 'baseUrl' | 'fencing'>>,
  clock: () => number,
) {
  const { database: target, workers = 1, baseUrl, fencing = 'operator' } = settings
  let store: Store | undefined
  const open = lazy(async () => {
    if (!target) return { failure: skipped('ADIT_DATABASE_URL is invalid.') }
    if (target.engine === 'sqlite' && !existsSync(target.path)) return { failure: noFile(target.path) }
    try {
      store = await openUnchanged(target)
      return { store }
    } catch (error) {
      const { reason, remedy } = explainDatabaseError(target, error)
      return { failure: problem(reason, remedy) }
    }
  })
  const onStore = (name: string, check: (store: Store) => Promise<Finding | Finding[]>): Check => ({
    name,
    async run() {
      const opened = await open()
      return opened.store ? check(opened.store) : skipped('The database cannot be used.')
    },
  })
  const database: Check = {
    name: 'database',
    async run() {
      const opened = await open()
      if (opened.failure) return opened.failure
      return opened.store.engine === 'sqlite'
        ? checkSqlite(opened.store)
        : checkPostgres(opened.store, workers, fencing)
    },
  }
  return {
    checks: [
      database,
      onStore('schema', (store) => checkSchema(store)),
      onStore('clock', (store) => checkClock(store, clock)),
      onStore('nodes', checkNodes),
      onStore('edges', (store) => checkEdges(store, baseUrl)),
    ],
    close: async (): Promise<void> => store?.close(),
  }
}

const noFile = (path: string) =>
  problem(
    `No database at ${path}.`,
    'Check ADIT_DATABASE_URL, and the working directory if its path is relative; `adit serve` or `adit admin ' +
      'migrate` creates a database.',
  )

/** `openUnchanged` has already asserted the settings, which belong to the connection. */
const checkSqlite = async (store: Store) => ok(`SQLite ${await readSqliteVersion(store)}`)

async function checkPostgres(store: Store, workers: number, fencing: Config['fencing']): Promise<Finding[]> {
  const facts = await readPostgresFacts(store)
  const findings = postgresFindings(facts, workers)
  if (findings.length === 0) findings.push(ok(`PostgreSQL ${facts.version}`))
  return [...findings, ...replicationFindings(await readStandbys(store), fencing)]
}

/** The schema is a parameter for tests. */
export async function checkSchema({ db }: Store, schema?: Schema): Promise<Finding> {
  const { version, known, incompatibility } = await readSchemaState(db, schema)
  if (incompatibility) return problem(incompatibility.reason, incompatibility.remedy)
  if (version > known)
    return warning(
      `The database has schema version ${version}, but this adit supports versions up to ${known}.`,
      'Update this node: another one already runs a newer version.',
    )
  if (version === 0)
    return warning('The database has no tables yet.', 'Start `adit serve`, or run `adit admin migrate`.')
  if (version < known)
    return warning(
      `Migrations are pending: the schema has version ${version} of ${known}.`,
      'Make a backup (docs/operations/backup.md), then start `adit serve` of this version, or run `adit ' +
        'admin migrate`.',
    )
  return ok(`Schema version ${version}, no pending migrations`)
}
