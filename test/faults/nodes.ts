// Server processes that can be killed and paused.
import type { Test } from '../support/cleanup.ts'
import { startServing } from '../support/processes/process.ts'
import { workersOf } from '../support/processes/workers.ts'
import { until } from '../support/until.ts'

const STARTS_MAX = 5

export interface Node {
  readonly name: string
  /** Changes with each start. */
  readonly url: string
  /** Errors logged by all of its processes. */
  readonly errorLog: string
  start(): Promise<void>
  /** SIGKILL, as in a power failure. */
  kill(): Promise<void>
  readonly hasWorkers: boolean
  /** SIGKILL to one of its workers. Resolves when another one is started. */
  killWorker(): Promise<void>
  /** SIGSTOP: connections stay open and nothing responds. */
  pause(): void
  resume(): void
  /** The wall clock of the process, by 4 minutes. */
  jumpClock(): void
}

const jumpingClock = `--import=${new URL('jumping-clock.ts', import.meta.url)}`

export async function startNode(t: Test, name: string, env: Record<string, string>): Promise<Node> {
  let errorLog = ''
  const start = async () => {
    const limits = {
      // A long run creates more keys than the default limit allows.
      ADIT_KEYS_PER_WORKSPACE: '1000000',
      // The clients of all edges have one address here: while a node is paused, they open more connections to
      // it than a process accepts from one client.
      ADIT_TRUSTED_PROXIES: '127.0.0.1',
    }
    const NODE_OPTIONS = `${env.NODE_OPTIONS ?? ''} ${jumpingClock}`
    const started = await startServing(t, { ...env, ...limits, ADIT_LOG_LEVEL: 'error', NODE_OPTIONS })
    started.child.stderr?.on('data', (chunk) => {
      errorLog = (errorLog + chunk).slice(-10_000)
    })
    return started
  }
  let running = await start()
  const signalAll = (name: NodeJS.Signals) => {
    const primary = running.child.pid as number
    for (const pid of [primary, ...workersOf(primary)]) signal(pid, name)
  }
  return {
    name,
    hasWorkers: Number(env.ADIT_WORKERS ?? 1) > 1,
    get url() {
      return running.url
    },
    get errorLog() {
      return errorLog
    },
    async start() {
      for (let attempt = 1; ; attempt++)
        try {
          running = await start()
          return
        } catch (error) {
          // Startup fails if the database goes away meanwhile; a supervisor would start it again.
          if (attempt === STARTS_MAX) throw error
        }
    },
    async kill() {
      // Workers too: one that is paused would not notice that its primary is gone.
      signalAll('SIGKILL')
      await running.ended
    },
    async killWorker() {
      const primary = running.child.pid as number
      const before = workersOf(primary)
      const killed = before.at(-1) as number
      signal(killed, 'SIGKILL')
      await until('another worker is started', () => {
        const workers = workersOf(primary)
        return workers.length === before.length && !workers.includes(killed)
      })
    },
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    jumpClock: () => signalAll('SIGUSR2'),
  }
}

/** A worker may have just ended. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
