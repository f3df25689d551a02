// Runs adit as a process, as its users do.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd, type Test } from '../cleanup.ts'
import { SECRET } from '../databases/migrated-databases.ts'
import type { CommandRequest } from './command-runner.ts'

export const root = fileURLToPath(new URL('../../..', import.meta.url))
const launcher = fileURLToPath(new URL('../../../bin/adit.js', import.meta.url))
const commandRunner = fileURLToPath(new URL('command-runner.ts', import.meta.url))

export interface Ended {
  code: number | null
  signal: string | null
  stdout: string
  stderr: string
}

export interface RunningProcess {
  child: ChildProcess
  ended: Promise<Ended>
  /** Sends the signal, by default SIGTERM, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>
  /** Waits for a match in stdout or stderr. */
  waitFor(pattern: RegExp, where?: 'stdout' | 'stderr'): Promise<RegExpExecArray>
}

/** Only a test that fails waits for so long. */
const WAIT_MAX_MS = 120_000

/** The environment has only the given variables and those that every process needs. */
export function startProcess(
  t: Test,
  args: string[],
  env: Record<string, string>,
  input = '',
  cwd = process.cwd(),
  /** The limit of open files; undefined for the one of this process. */
  descriptors?: number,
): RunningProcess {
  const command = [process.execPath, launcher, ...args]
  const limited = ['sh', '-c', `ulimit -n ${descriptors} && exec "$@"`, 'sh', ...command]
  const [program = '', ...rest] = descriptors === undefined ? command : limited
  const child = spawn(program, rest, {
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
    cwd,
  })
  child.stdin.end(input)
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  atEnd(t, () => {
    child.kill('SIGKILL')
    return ended
  })
  const stop = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal)
    return ended
  }
  const waitFor = (pattern: RegExp, where: 'stdout' | 'stderr' = 'stdout') =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(where === 'stdout' ? stdout : stderr)
        if (found) resolve(found)
      }
      const fail = (what: string) =>
        reject(new Error(`${what} without printing ${pattern}:\n${stdout}\n${stderr}`))
      child[where].on('data', look)
      look()
      setTimeout(fail, WAIT_MAX_MS, `ran for ${WAIT_MAX_MS} ms`).unref()
      void ended.then(() => fail('exited'))
    })
  return { child, ended, stop, waitFor }
}

interface ServeFacts {
  url: string
  api: string
  metrics?: string
  token?: string
}

/** Clients of tests write without a pause. */
const limits = { ADIT_WRITES_PER_HOUR: '1000000' }

/** `adit serve --json`, once it has printed its URL. */
export function startServing(t: Test, env: Record<string, string>, descriptors?: number) {
  const all = { ADIT_PORT: '0', ADIT_SECRET: SECRET, ...limits, ...env }
  return serving(startProcess(t, ['serve', '--json'], all, '', undefined, descriptors))
}

export async function serving(running: RunningProcess) {
  const [line] = await running.waitFor(/^\{.*\}$/m)
  return { ...running, ...(JSON.parse(line) as ServeFacts) }
}

/** They handle signals and may exit at any time, so each has a process of its own. */
const LONG_RUNNING = new Set(['serve', 'edge', 'mcp'])
const idle: ChildProcess[] = []

/**
 * Runs a command to its end, in a process that is used again for the next one: starting one costs more CPU
 * than most commands.
 */
export async function run(t: Test, args: string[], env: Record<string, string>, input = ''): Promise<Ended> {
  if (LONG_RUNNING.has(args[0] ?? '')) return startProcess(t, args, env, input).ended
  const runner = idle.pop() ?? fork(commandRunner, { execArgv: [] })
  let isRunning = true
  atEnd(t, () => isRunning && runner.kill('SIGKILL'))
  const ended = await new Promise<Ended>((resolve, reject) => {
    const fail = () => reject(new Error(`the process exited while it ran: adit ${args.join(' ')}`))
    runner.once('exit', fail)
    runner.once('message', (message) => {
      runner.off('exit', fail)
      resolve(message as Ended)
    })
    runner.send({ args, env, input } satisfies CommandRequest)
  })
  isRunning = false
  idle.push(runner)
  return ended
}

after(() => {
  for (const runner of idle) runner.disconnect()
})
