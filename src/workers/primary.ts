// The primary: starts the workers, which share its port, replaces those that end, and restarts them one after
// the other. It serves no requests itself.
import cluster, { type Address, type Worker } from 'node:cluster'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isMessage, sendTo } from './messages.ts'

/** A worker that does not listen by then is killed; during a restart the previous one goes on. */
const START_TIMEOUT_MS = 90_000
/** A worker has 20 s to complete requests. One that still runs by then is killed. */
const STOP_TIMEOUT_MS = 40_000
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 30_000
/** The backoff starts again after a worker that has run for so long. */
const STABLE_MS = 30_000

export interface Workers {
  readonly address: Address
  /** The listening workers. */
  list(): Worker[]
  /** Starts another worker for each, and stops the previous one when it listens. */
  restart(): Promise<void>
  /** Sends the signal to every worker; those that end are not replaced. */
  stop(signal: NodeJS.Signals): void
  /** Resolves when all have ended after `stop`. */
  ended: Promise<void>
}

/** The place of a worker, empty until it is replaced. */
interface Slot {
  worker: Worker | undefined
}

export async function startWorkers(count: number, log: Logger): Promise<Workers> {
  relayBroadcasts()
  const first = cluster.fork()
  const address = await listening(first)
  const slots: Slot[] = [{ worker: first }]
  const stopping = new AbortController()
  let restarting: Promise<void> | undefined

  async function start(): Promise<Worker> {
    const worker = cluster.fork()
    await listening(worker)
    log.info({ worker: worker.process.pid }, 'worker listening')
    return worker
  }

  /** Keeps a worker in the slot until all are stopped. */
  async function supervise(slot: Slot): Promise<void> {
    let backoffMs = BACKOFF_MIN_MS
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      const reason = await runWorker(slot).catch(errorOf)
      if (stopping.signal.aborted) return
      if (performance.now() - startedAt > STABLE_MS) backoffMs = BACKOFF_MIN_MS
      log.error({ ...reason, retryMs: backoffMs }, 'worker ended; starting another')
      await sleep(backoffMs, undefined, stopping).catch(() => {})
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS)
    }
  }

  /** Resolves when the worker of the slot, or one that a restart has put there, has ended. */
  async function runWorker(slot: Slot) {
    slot.worker ??= await start()
    for (;;) {
      const worker: Worker = slot.worker
      const exit = await exitOf(worker)
      if (slot.worker !== worker) continue
      slot.worker = undefined
      return exit
    }
  }

  async function restartAll(): Promise<void> {
    log.info({ workers: count }, 'restarting the workers, one after the other')
    for (const slot of slots) {
      const previous = slot.worker
      if (!previous || stopping.signal.aborted) continue
      const next = await start()
      // If the previous one has ended meanwhile, `supervise` replaces it.
      const isReplaced = slot.worker === previous
      if (isReplaced) slot.worker = next
      await endReplaced(isReplaced ? previous : next)
    }
    log.info({ workers: count }, 'workers restarted')
  }

  while (slots.length < count) slots.push({ worker: undefined })
  const supervised = slots.map(supervise)
  return {
    address,
    list: () => slots.flatMap(({ worker }) => worker ?? []),
    restart() {
      restarting ??= restartAll()
        .catch((error) => log.error({ err: error }, 'restart stopped: the new worker did not start'))
        .finally(() => {
          restarting = undefined
        })
      return restarting
    },
    stop(signal) {
      stopping.abort()
      for (const worker of runningWorkers()) worker.process.kill(signal)
    },
    ended: Promise.all(supervised).then(async () => void (await Promise.all(runningWorkers().map(exitOf)))),
  }
}

const runningWorkers = (): Worker[] =>
  Object.values(cluster.workers ?? {}).flatMap((worker) => (worker && !worker.isDead() ? worker : []))

/** Rejects if the worker ends before it listens. */
function listening(worker: Worker): Promise<Address> {
  const { promise, resolve, reject } = Promise.withResolvers<Address>()
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), START_TIMEOUT_MS)
  worker.once('listening', resolve)
  worker.once('exit', () => reject(new Error('The worker ended before it listened.')))
  return promise.finally(() => clearTimeout(timer))
}

interface Exit {
  worker: number | undefined
  code: number | null
  signal: NodeJS.Signals | null
}

function exitOf({ process: child }: Worker): Promise<Exit> {
  const describe = () => ({ worker: child.pid, code: child.exitCode, signal: child.signalCode })
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(describe())
  return new Promise((resolve) => child.once('exit', () => resolve(describe())))
}

const errorOf = (error: unknown) => ({ err: error })

async function endReplaced(worker: Worker): Promise<void> {
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), STOP_TIMEOUT_MS)
  sendTo(worker, { kind: 'adit:replaced' })
  await exitOf(worker)
  clearTimeout(timer)
}

/** Passes what a worker broadcasts to the others. */
function relayBroadcasts(): void {
  cluster.on('message', (from, message: unknown) => {
    if (!isMessage(message) || message.kind !== 'adit:broadcast') return
    for (const worker of runningWorkers()) if (worker !== from) sendTo(worker, message)
  })
}
