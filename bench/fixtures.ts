// Shared by the figures of a run: the load process, seeded databases and a PostgreSQL cluster. Each is
// created on first use, and all are removed at the end of the run.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, createCluster } from '../test/support/databases/postgres.ts'
import { type Load, startLoad } from './load.ts'
import {
  aditEnvironment,
  type Baseline,
  type Environment,
  runAdit,
  type Served,
  startBaseline,
  startServe,
} from './processes.ts'
import { createKeys, SEEDED_KEYS, type SeededKeys } from './seed/keys.ts'
import type { Plan } from './seed/plan.ts'
import { seedPostgres, withClient } from './seed/postgres.ts'
import { seedSqlite } from './seed/sqlite.ts'

const POSTGRES_SETTINGS = ['shared_buffers=1GB', 'maintenance_work_mem=512MB', 'max_wal_size=8GB']

export interface Fixtures {
  readonly load: Load
  readonly folder: string
  keys(): SeededKeys
  /** The value for ADIT_DATABASE_URL. */
  sqlite(name: string, plan: Plan): Promise<string>
  postgres(name: string, plan: Plan): Promise<string>
  adit(database: string, settings?: Environment): Promise<Served>
  baseline(name: string, settings: unknown): Promise<Baseline>
  /** Stops it after the figure. */
  keep<S extends Served>(starting: Promise<S>): Promise<S>
  progress(text: string): void
  /** Stops the servers that a figure started. */
  clear(): Promise<void>
  close(): Promise<void>
}

const migrate = (database: string) => runAdit(['admin', 'migrate'], aditEnvironment(database))

export function createFixtures(progress: (text: string) => void, keyCount = SEEDED_KEYS): Fixtures {
  const folder = mkdtempSync(join(tmpdir(), 'adit-bench-'))
  const load = startLoad()
  const databases = new Map<string, Promise<string>>()
  const servers = new Set<Served>()
  let cluster: Promise<Cluster> | undefined
  let keys: SeededKeys | undefined
  let logs = 0
  let isClosed = false

  const createOnce = () => {
    if (!keys) progress('creating keys')
    keys ??= createKeys(join(folder, 'keys.txt'), keyCount)
    return keys
  }
  const startCluster = async () => {
    const cluster = await createCluster(POSTGRES_SETTINGS)
    await cluster.start()
    return cluster
  }
  const once = (name: string, make: () => Promise<string>) => {
    const existing = databases.get(name) ?? make()
    databases.set(name, existing)
    return existing
  }
  const keep = async <S extends Served>(starting: Promise<S>): Promise<S> => {
    const server = await starting
    servers.add(server)
    // The run was interrupted during startup.
    if (isClosed) {
      await server.stop()
      throw new Error('the run was interrupted')
    }
    return server
  }
  const clear = async () => {
    await Promise.all([...servers].map((server) => server.stop()))
    servers.clear()
  }

  return {
    load,
    folder,
    keys: createOnce,
    progress,
    sqlite: (name, plan) =>
      once(`sqlite ${name}`, async () => {
        const path = join(folder, `${name}.db`)
        const seeded = createOnce()
        progress(`seeding SQLite: ${name}`)
        // Creates the schema.
        await migrate(`sqlite:${path}`)
        seedSqlite(path, plan, seeded)
        return `sqlite:${path}`
      }),
    postgres: (name, plan) =>
      once(`postgres ${name}`, async () => {
        const seeded = createOnce()
        progress(`seeding PostgreSQL: ${name}`)
        cluster ??= startCluster()
        const { url } = await cluster
        await withClient(`${url}/postgres`, (client) => client.query(`create database ${name}`))
        await migrate(`${url}/${name}`)
        await seedPostgres(`${url}/${name}`, plan, seeded)
        return `${url}/${name}`
      }),
    adit(database, settings) {
      progress('measuring')
      return keep(startServe(database, join(folder, `log-${++logs}`), settings))
    },
    baseline: (name, settings) => keep(startBaseline(name, settings)),
    keep,
    clear,
    async close() {
      isClosed = true
      load.stop()
      await clear()
      await (await cluster?.catch(() => undefined))?.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
