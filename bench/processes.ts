// The measured processes: Adit as shipped, and the baselines.
import { type ChildProcess, execFile, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const launcher = `${root}bin/adit.js`
const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: { start: string } }
/** The arguments of `node` in `npm start`. */
const [, ...SERVE] = scripts.start.split(' ')
/** For databases that are removed after the run. */
const SECRET = 'only-for-the-bench-0123456789abcdefghij'

export interface Served {
  url: string
  pid: number
  stop(): Promise<void>
}

export type Environment = Record<string, string>

/** No other variables: settings of the user's environment must not affect a result. */
const baseEnvironment: Environment = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' }

export const aditEnvironment = (database: string, more: Environment = {}): Environment => ({
  ADIT_DATABASE_URL: database,
  ADIT_SECRET: SECRET,
  ADIT_PORT: '0',
  // Figures of revocations create hundreds of keys.
  ADIT_WRITES_PER_HOUR: '1000000',
  ...more,
})

/** Runs a command to its end. */
export const runAdit = (args: string[], env: Environment) =>
  promisify(execFile)(process.execPath, [launcher, ...args], { env: { ...baseEnvironment, ...env } })

const spawnNode = (args: string[], env: Environment, logFile: string) => {
  const log = openSync(logFile, 'w')
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...baseEnvironment, ...env },
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  return child
}

export const spawnServe = (database: string, logFile: string, more: Environment = {}) =>
  spawnNode([...SERVE, '--json'], aditEnvironment(database, more), logFile)

/** `adit serve` as shipped, with the log in a file. */
export const startServe = (database: string, logFile: string, more: Environment = {}) =>
  waitForUrl(spawnServe(database, logFile, more), logFile)

/** Another command that prints its URL and keeps running. */
export const startCommand = (args: string[], env: Environment, logFile: string) =>
  waitForUrl(spawnNode([launcher, ...args], env, logFile), logFile)

/** Resolves when the program has printed its URL, alone on the first line or in JSON. */
async function waitForUrl(child: ChildProcess, logFile: string): Promise<Served> {
  const line = await new Promise<string>((resolve, reject) => {
    let output = ''
    const onExit = () => reject(new Error(`adit did not start: ${readFileSync(logFile, 'utf8')}`))
    child.once('exit', onExit)
    child.stdout?.on('data', (chunk) => {
      output += chunk
      if (!output.includes('\n')) return
      child.off('exit', onExit)
      resolve(output)
    })
  })
  const { url } = line.startsWith('{') ? (JSON.parse(line) as { url: string }) : { url: line.trim() }
  const reportExit = () => {
    const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n')
    process.stderr.write(`adit exited unexpectedly: ${lines.slice(-2).join('\n')}\n`)
  }
  child.once('exit', reportExit)
  return {
    url,
    pid: child.pid as number,
    async stop() {
      child.off('exit', reportExit)
      await end(child)
      rmSync(logFile, { force: true })
    },
  }
}

export interface Baseline extends Served {
  /** Sends a message, and resolves with the reply. */
  request<T>(message: unknown): Promise<T>
}

/** Starts a file of `baselines/` as a process, which reports its port when it is ready. */
export async function startBaseline(name: string, settings: unknown): Promise<Baseline> {
  const file = fileURLToPath(new URL(`baselines/${name}.ts`, import.meta.url))
  const child = fork(file, [JSON.stringify(settings)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: baseEnvironment,
  })
  const nextMessage = () =>
    new Promise<unknown>((resolve, reject) => {
      const gone = () => reject(new Error(`the baseline ${name} exited`))
      child.once('exit', gone)
      child.once('message', (message) => {
        child.off('exit', gone)
        resolve(message)
      })
    })
  const { port } = (await nextMessage()) as { port?: number }
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid as number,
    stop: () => end(child),
    request<T>(message: unknown) {
      const reply = nextMessage()
      child.send(message as object)
      return reply as Promise<T>
    },
  }
}

/** By SIGKILL: there is nothing to clean up, as the database is removed too. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** The process, and the workers that it has started. */
export const withWorkers = (pid: number): number[] => [
  pid,
  ...(readProc(pid, `task/${pid}/children`) ?? '').split(' ').filter(Boolean).map(Number),
]

const TICKS_PER_SECOND = 100

/** The processor time of all threads of the processes; undefined without /proc. */
export function cpuSeconds(...pids: number[]): number | undefined {
  const ticks = pids.map((pid) => {
    const fields = readProc(pid, 'stat')?.split(') ').at(-1)?.split(' ')
    return fields ? Number(fields[11]) + Number(fields[12]) : Number.NaN
  })
  const seconds = ticks.reduce((sum, each) => sum + each, 0) / TICKS_PER_SECOND
  return Number.isNaN(seconds) ? undefined : seconds
}

/** The resident set, in MiB. */
export function residentMib(pid: number): number {
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
