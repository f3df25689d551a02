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

/** No other variables: settings of the user's environment must not affect a result. */
export const aditEnvironment = (database: string, more: Record<string, string> = {}) => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  ADIT_DATABASE_URL: database,
  ADIT_SECRET: SECRET,
  ADIT_PORT: '0',
  ...more,
})

/** Runs a command to its end. */
export const runAdit = (database: string, args: string[]) =>
  promisify(execFile)(process.execPath, [launcher, ...args], { env: aditEnvironment(database) })

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

/** As shipped, with the log in a file. */
export async function startAdit(database: string, logFile: string): Promise<Served> {
  const child = spawnAdit(database, logFile)
  const line = await new Promise<string>((resolve, reject) => {
    let output = ''
    child.stdout?.on('data', (chunk) => {
      output += chunk
      if (output.includes('\n')) resolve(output)
    })
    child.once('exit', () => reject(new Error(`adit did not start: ${readFileSync(logFile, 'utf8')}`)))
  })
  const { url } = JSON.parse(line) as { url: string }
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
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' },
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

const TICKS_PER_SECOND = 100

/** Of all threads; undefined without /proc. */
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
