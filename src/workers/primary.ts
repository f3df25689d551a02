// The primary: starts the workers, which share its port, replaces those that end, and restarts them one after
// the other. It serves no requests itself.
import cluster, { type Address, type Worker } from 'node:cluster'
import type { Logger } from 'pino'
import { isMessage, sendTo } from './messages.ts'

/** Of a worker that takes longer to start, the database may be down: the one that it replaces goes on. */
const START_TIMEOUT_MS = 90_000
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 30_000
/** A worker that has run for so long is replaced without a pause. */
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

/** A worker, or the pause until it is replaced. */
interface Slot {
  worker: Worker | undefined
}

export async function startWorkers(count: number, log: Logger): Promise<Workers> {
  relayBroadcasts()
  const first = cluster.fork()
  const address = await listening(first)
  const slots: Slot[] = [{ worker: first }]
  let isStopping = false
  let restarting: Promise<void> | undefined

  async function start(): Promise<Worker> {
    const worker = cluster.fork()
    await listening(worker)
    log.info({ worker: worker.process.pid }, 'worker listening')
    return worker
  }

  /** Replaces the worker of a slot when it ends, until all are stopped. */
  async function keep(slot: Slot): Promise<void> {
    let backoffMs = BACKOFF_MIN_MS
    while (!isStopping) {
      const startedAt = performance.now()
      try {
        slot.worker ??= await start()
        await endOf(slot)
        if (isStopping) return
        slot.worker = undefined
        if (performance.now() - startedAt > STABLE_MS) backoffMs = BACKOFF_MIN_MS
      } catch {
        // It has reported why.
      }
      if (isStopping) return
      log.error({ retryMs: backoffMs }, 'worker ended; starting another')
      await new Promise((resolve) => setTimeout(resolve, backoffMs))
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS)
    }
  }

  async function restartAll(): Promise<void> {
    log.info({ workers: count }, 'restarting the workers, one after the other')
    for (const slot of slots) {
      const previous = slot.worker
      if (!previous || isStopping) continue
      const next = await start()
      // If the previous one has ended meanwhile, `keep` replaces it.
      const leaving = slot.worker === previous ? previous : next
      if (leaving === previous) slot.worker = next
      leaving.process.kill('SIGTERM')
      if (!leaving.isDead()) await new Promise((resolve) => leaving.once('exit', resolve))
    }
    log.info({ workers: count }, 'workers restarted')
  }

  while (slots.length < count) slots.push({ worker: undefined })
  const keeping = slots.map(keep)
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
      isStopping = true
      for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill(signal)
    },
    ended: Promise.all(keeping).then(allEnded),
  }
}

/** Rejects if the worker ends before it listens. */
function listening(worker: Worker): Promise<Address> {
  const { promise, resolve, reject } = Promise.withResolvers<Address>()
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), START_TIMEOUT_MS)
  worker.once('listening', resolve)
  worker.once('exit', () => reject(new Error('The worker ended before it listened.')))
  return promise.finally(() => clearTimeout(timer))
}

/** Resolves when the worker of the slot has ended and was not exchanged. */
async function endOf(slot: Slot): Promise<void> {
  for (;;) {
    const { worker } = slot
    if (worker && !worker.isDead()) await new Promise((resolve) => worker.once('exit', resolve))
    if (slot.worker === worker) return
  }
}

async function allEnded(): Promise<void> {
  const running = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined)
  await Promise.all(running.map((worker) => new Promise((resolve) => worker.once('exit', resolve))))
}

/** Passes what a worker broadcasts to the others. */
function relayBroadcasts(): void {
  cluster.on('message', (from, message: unknown) => {
    if (!isMessage(message) || message.kind !== 'adit:broadcast') return
    for (const worker of Object.values(cluster.workers ?? {}))
      if (worker && worker !== from) sendTo(worker, message)
  })
}
