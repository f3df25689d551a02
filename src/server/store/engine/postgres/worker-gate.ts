// Limits how many connections of a node the workers of a Citus cluster can occupy, so that a worker that does
// not respond delays neither the others nor work that needs only the coordinator.
import { isWorkerLost, Overloaded } from '../errors.ts'

/** Less than the ten connections of a node. */
const CONCURRENT_MAX = 6
const CONCURRENT_PER_WORKER = 3
/** Maximum of waiting statements for each worker; a statement takes milliseconds. */
const WAITING_MAX = 1_000
/** After an error of a worker, its statements are rejected for this long, then one is let through. */
const PAUSE_MS = 1_000

const STATEMENT_TIMEOUT = '57014'

/** Runs work that needs a worker; '' if there are none. */
type WorkerGate = <T>(worker: string, work: () => Promise<T>) => Promise<T>

interface Worker {
  running: number
  waiting: (() => void)[]
  failure?: { error: unknown; at: number }
}

export function createWorkerGate(): WorkerGate {
  const workers = new Map<string, Worker>()
  let running = 0

  function getWorker(name: string): Worker {
    const worker = workers.get(name) ?? { running: 0, waiting: [] }
    workers.set(name, worker)
    return worker
  }

  const hasRoom = (worker: Worker) => running < CONCURRENT_MAX && worker.running < CONCURRENT_PER_WORKER

  function start(worker: Worker): void {
    running += 1
    worker.running += 1
  }

  function finish(worker: Worker): void {
    running -= 1
    worker.running -= 1
    // The worker that finished comes last, so that a busy one does not starve the others.
    for (const other of [...workers.values()].sort((a, b) => a.running - b.running))
      while (other.waiting.length > 0 && hasRoom(other)) {
        start(other)
        other.waiting.shift()?.()
      }
  }

  /** While a worker fails, one statement at a time tests whether it is back. */
  function rejectWhileFailing({ failure, running }: Worker): void {
    if (failure && (running > 0 || isRecent(failure))) throw failure.error
  }

  async function enter(worker: Worker): Promise<void> {
    if (hasRoom(worker)) return start(worker)
    if (worker.waiting.length >= WAITING_MAX) throw new Overloaded('Too many usage statements.')
    await new Promise<void>((resolve) => worker.waiting.push(resolve))
    if (!worker.failure || !isRecent(worker.failure)) return
    finish(worker)
    throw worker.failure.error
  }

  return async (name, work) => {
    if (name === '') return work()
    const worker = getWorker(name)
    rejectWhileFailing(worker)
    await enter(worker)
    try {
      const result = await work()
      delete worker.failure
      return result
    } catch (error) {
      if (isFailure(error)) worker.failure = { error, at: performance.now() }
      throw error
    } finally {
      finish(worker)
    }
  }
}

const isRecent = ({ at }: { at: number }) => performance.now() - at < PAUSE_MS

/** A worker that does not respond at all shows as a statement timeout. */
const isFailure = (error: unknown) =>
  isWorkerLost(error) || (error as { code?: string }).code === STATEMENT_TIMEOUT
