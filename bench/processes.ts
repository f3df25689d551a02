// The processes that are measured: Adit as its users run it, and what it is compared with.
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const launcher = `${root}bin/adit.js`
const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: { start: string } }
/** The words after `node` with which `npm start` runs the server. */
const [, ...SERVE] = scripts.start.split(' ')
/** Only for databases that live as long as a run. */
const SECRET = 'only-for-the-bench-0123456789abcdefghij'

export interface Served {
  url: string
  pid: number
  stop(): Promise<void>
}

/** The environment is only what is given, and what any process needs: nobody's own settings get into a figure. */
export const aditEnvironment = (database: string, more: Record<string, string> = {}) => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  ADIT_DATABASE_URL: database,
  ADIT_SECRET: SECRET,
  ADIT_PORT: '0',
  ...more,
})

/** A command that ends by itself. */
export const runAdit = (database: string, words: string[]) =>
  promisify(execFile)(process.execPath, [launcher, ...words], { env: aditEnvironment(database) })

export const spawnAdit = (database: string, logFile: string, more: Record<string, string> = {}) => {
  const log = openSync(logFile, 'w')
  const child = spawn(process.execPath, [...SERVE, '--json'], {
    cwd: root,
    env: aditEnvironment(database, more),
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  return child
}

/** As shipped; its log goes to a file, as a supervisor would have it. */
export async function startAdit(database: string, logFile: string): Promise<Served> {
  const child = spawnAdit(database, logFile)
  const line = await new Promise<string>((resolve, reject) => {
    let said = ''
    child.stdout?.on('data', (chunk) => {
      said += chunk
      if (said.includes('\n')) resolve(said)
    })
    child.once('exit', () => reject(new Error(`adit did not start: ${readFileSync(logFile, 'utf8')}`)))
  })
  const { url } = JSON.parse(line) as { url: string }
  const tellOfLoss = () =>
    process.stderr.write(
      `adit ended by itself: ${readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-2).join('\n')}\n`,
    )
  child.once('exit', tellOfLoss)
  return {
    url,
    pid: child.pid as number,
    async stop() {
      child.off('exit', tellOfLoss)
      await end(child)
      rmSync(logFile, { force: true })
    },
  }
}

export interface Peer extends Served {
  /** Asks it something, where it is one that answers. */
  ask<T>(question: unknown): Promise<T>
}

/** A file of `peers/`, as a process of its own; it says when it is ready, and where. */
export async function startPeer(name: string, settings: unknown): Promise<Peer> {
  const file = fileURLToPath(new URL(`peers/${name}.ts`, import.meta.url))
  const child = fork(file, [JSON.stringify(settings)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' },
  })
  const hear = () =>
    new Promise<unknown>((resolve, reject) => {
      const gone = () => reject(new Error(`the peer ${name} ended`))
      child.once('exit', gone)
      child.once('message', (message) => {
        child.off('exit', gone)
        resolve(message)
      })
    })
  const { port } = (await hear()) as { port?: number }
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid as number,
    stop: () => end(child),
    ask<T>(question: unknown) {
      const answer = hear()
      child.send(question as object)
      return answer as Promise<T>
    },
  }
}

/** Killed: what it would tidy up is thrown away with its database. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

const TICKS_PER_SECOND = 100

/** Of all its threads; undefined where there is no /proc. */
export function cpuSecondsOf(pid: number): number | undefined {
  const fields = readProc(pid, 'stat')?.split(') ').at(-1)?.split(' ')
  return fields && (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** The resident set, in MiB. */
export function residentOf(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readProc(pid, 'status') ?? '')?.[1]
  if (!kilobytes) throw new Error('no /proc of that process: it is gone, or this is not Linux')
  return Number(kilobytes) / 1024
}

function readProc(pid: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return undefined
  }
}
