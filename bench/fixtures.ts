// What the figures of one run share: the load process, seeded databases, a PostgreSQL. Each is made when a figure first asks
// for it, and all of it is gone when the run ends, however it ends.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, createCluster } from '../test/support/postgres.ts'
import { type Load, startLoad } from './load.ts'
import { type Peer, runAdit, type Served, startAdit, startPeer } from './processes.ts'
import { type Minted, mintKeys } from './seed/keys.ts'
import type { Plan } from './seed/plan.ts'
import { seedPostgres, withClient } from './seed/postgres.ts'
import { seedSqlite } from './seed/sqlite.ts'

const POSTGRES_SETTINGS = ['shared_buffers=1GB', 'maintenance_work_mem=512MB', 'max_wal_size=8GB']

export interface Workbench {
  readonly load: Load
  readonly folder: string
  minted(): Minted
  /** The value for ADIT_DATABASE_URL. */
  sqlite(name: string, plan: Plan): Promise<string>
  postgres(name: string, plan: Plan): Promise<string>
  adit(database: string): Promise<Served>
  peer(name: string, settings: unknown): Promise<Peer>
  say(text: string): void
  /** Stops the servers that a figure started. */
  clear(): Promise<void>
  close(): Promise<void>
}

export function createWorkbench(say: (text: string) => void): Workbench {
  const folder = mkdtempSync(join(tmpdir(), 'adit-bench-'))
  const load = startLoad()
  const databases = new Map<string, Promise<string>>()
  const servers = new Set<Served>()
  let cluster: Promise<Cluster> | undefined
  let minted: Minted | undefined
  let logs = 0
  let isClosed = false

  const mint = () => {
    if (!minted) say('minting keys')
    minted ??= mintKeys(join(folder, 'keys.txt'))
    return minted
  }
  const startCluster = async () => {
    const made = await createCluster(POSTGRES_SETTINGS)
    await made.start()
    return made
  }
  const once = (name: string, make: () => Promise<string>) => {
    const known = databases.get(name) ?? make()
    databases.set(name, known)
    return known
  }
  const keep = async <S extends Served>(starting: Promise<S>): Promise<S> => {
    const server = await starting
    servers.add(server)
    // Somebody pressed Ctrl-C while it started.
    if (isClosed) {
      await server.stop()
      throw new Error('the run was ended')
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
    minted: mint,
    say,
    sqlite: (name, plan) =>
      once(`sqlite ${name}`, async () => {
        const path = join(folder, `${name}.db`)
        const given = mint()
        say(`seeding SQLite: ${name}`)
        // Any command brings the schema up to date.
        await runAdit(`sqlite:${path}`, ['admin', 'workspace', 'list'])
        seedSqlite(path, plan, given)
        return `sqlite:${path}`
      }),
    postgres: (name, plan) =>
      once(`postgres ${name}`, async () => {
        const given = mint()
        say(`seeding PostgreSQL: ${name}`)
        cluster ??= startCluster()
        const { url } = await cluster
        await withClient(`${url}/postgres`, (client) => client.query(`create database ${name}`))
        await runAdit(`${url}/${name}`, ['admin', 'workspace', 'list'])
        await seedPostgres(`${url}/${name}`, plan, given)
        return `${url}/${name}`
      }),
    adit(database) {
      say('measuring')
      return keep(startAdit(database, join(folder, `log-${++logs}`)))
    },
    peer: (name, settings) => keep(startPeer(name, settings)),
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
