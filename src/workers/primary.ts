// The primary starts the workers, which share its port, replaces those that exit or hang, and restarts them
// one after the other. It serves no requests itself.
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { isSea } from 'node:sea'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { killHungWorkers } from './hang-detector.ts'
import { isMessage, type Message, sendTo } from './messages.ts'
import type { Port, PortSockets } from './port.ts'

/** A worker that does not listen after this time is killed; in a restart the previous one keeps serving. */
const START_TIMEOUT_MS = 90_000
/** A worker that runs this long after its stop delay is killed. It has 20 s to complete requests. */
const STOP_TIMEOUT_MS = 40_000
const BACKOFF_MIN_MS = 100
const BACKOFF_MAX_MS = 30_000
/** A worker that has run this long resets the backoff. */
const STABLE_MS = 30_000

export interface Workers {
  readonly port: number
  /** The listening workers. */
  list(): Worker[]
  /** Replaces the workers one at a time: starts a new one, and stops the previous one when that listens. */
  restart(): Promise<void>
  /** Sends the signal to all workers. Those that exit are not replaced. */
  stop(signal: NodeJS.Signals): void
  /** Resolves when all workers have exited after `stop`. */
  exited: Promise<void>
}

/** The place of one worker, empty between its exit and the start of the next. */
interface Slot {
  worker?: Worker | undefined
  /** Settles when the worker that is starting has become the worker of the slot, or has exited. */
  starting?: Promise<void> | undefined
  /** The sockets of the worker and of the one that replaces it. */
  sockets?: PortSockets | undefined
}

/**
 * The cluster module runs this program with `exec` and `args`. In an executable, the first argument takes the
 * place of the script, and the options of Node are built in.
 */
const program = isSea() ? { exec: process.argv[2] ?? '', args: process.argv.slice(3), execArgv: [] } : {}

interface WorkersOptions {
  readonly workers: number
  readonly stopDelayS: number
  /** Undefined if the cluster module passes the connections to the workers. */
  readonly port: Port | undefined
  readonly log: Logger
  /** Environment variables of a worker that inherits this number of sockets. */
  environment(sockets: number): object
  /** Called when a worker calls a function of the primary. May return a promise, which must not reject. */
  handleCall(name: string, args: unknown[], worker: Worker): unknown
  onNotice?(name: string, args: unknown[], worker: Worker): void
  /** A worker has exited, and all its messages were received. */
  onGone?(worker: Worker): void
}

export async function startWorkers(options: WorkersOptions): Promise<Workers> {
  const { workers: count, stopDelayS, port: sharedPort, log, environment } = options
  cluster.on('message', (sender, message: unknown) => {
    if (!isMessage(message)) return
    if (message.kind === 'adit:call') void respond(sender, message)
    if (message.kind === 'adit:notice') options.onNotice?.(message.name, message.args, sender)
    if (message.kind === 'adit:broadcast')
      for (const worker of runningWorkers()) if (worker !== sender) sendTo(worker, message)
  })
  cluster.on('disconnect', (worker) => options.onGone?.(worker))
  killHungWorkers(log)
  async function respond(worker: Worker, call: Message & { kind: 'adit:call' }): Promise<void> {
    const result = await options.handleCall(call.name, call.args, worker)
    sendTo(worker, { kind: 'adit:result', id: call.id, result })
  }
  function fork(slot: Slot): Worker {
    slot.sockets ??= sharedPort?.open()
    const fds = slot.sockets?.fds ?? []
    cluster.setupPrimary({ ...program, stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...fds] })
    const worker = cluster.fork(environment(fds.length))
    // Emitted if a connection or a message cannot be passed to a worker that has just exited.
    return worker.on('error', (error) => log.warn({ err: error }, 'cannot reach a worker'))
  }
  // The others start after it, on its port.
  const firstSlot: Slot = {}
  firstSlot.worker = fork(firstSlot)
  const port = await waitUntilListening(firstSlot.worker)
  const slots: Slot[] = [firstSlot]
  const stopping = new AbortController()
  let restarting: Promise<void> | undefined
  let isRestartRequested = false

  async function startWorker(slot: Slot): Promise<Worker> {
    const worker = fork(slot)
    await waitUntilListening(worker)
    log.info({ worker: worker.process.pid }, 'worker listening')
    return worker
  }

  function fill(slot: Slot): Promise<void> {
    slot.starting = startWorker(slot)
      .then((worker) => {
        slot.worker = worker
      })
      .finally(() => {
        slot.starting = undefined
      })
    return slot.starting
  }

  /** Keeps a worker in the slot until all are stopped. */
  async function supervise(slot: Slot): Promise<void> {
    let backoffMs = BACKOFF_MIN_MS
    while (!stopping.signal.aborted) {
      const { ranMs, ...reason } = await runWorker(slot).catch((error) => ({ err: error, ranMs: 0 }))
      if (stopping.signal.aborted) return
      // New connections would wait in the queues of these sockets. Once closed, the other workers get them.
      closeSockets(slot)
      if (ranMs > STABLE_MS) backoffMs = BACKOFF_MIN_MS
      log.error({ ...reason, retryMs: backoffMs }, 'worker exited; restarting')
      await sleep(backoffMs, undefined, stopping).catch(() => {})
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MAX_MS)
    }
  }

  /** Resolves when the slot is empty: a worker that a restart has put there meanwhile has exited, too. */
  async function runWorker(slot: Slot) {
    if (!slot.worker) await fill(slot)
    for (;;) {
      const worker = slot.worker as Worker
      const listeningSince = performance.now()
      const exit = await waitForExit(worker)
      // A restart has replaced it.
      if (slot.worker !== worker) continue
      slot.worker = undefined
      return { ...exit, ranMs: performance.now() - listeningSince }
    }
  }

  async function restartAll(): Promise<void> {
    log.info({ workers: count }, 'restarting the workers one at a time')
    for (const slot of slots) {
      // A worker that is starting may have read the state from before the restart, so it is replaced as well.
      await slot.starting?.catch(() => {})
      const previous = slot.worker
      if (!previous || stopping.signal.aborted) continue
      const next = await startWorker(slot)
      // If the previous worker has exited meanwhile, `supervise` starts another one, and `next` is stopped.
      const isReplaced = slot.worker === previous
      if (isReplaced) slot.worker = next
      await stopReplaced(isReplaced ? previous : next)
    }
    log.info({ workers: count }, 'workers restarted')
  }

  /** A request during a restart starts another one, because some workers are already replaced. */
  async function restartWhileRequested(): Promise<void> {
    while (isRestartRequested) {
      isRestartRequested = false
      await restartAll().catch((error) =>
        log.error({ err: error }, 'restart stopped: the new worker did not start'),
      )
    }
  }

  while (slots.length < count) slots.push({})
  const supervision = Promise.all(slots.map(supervise))
  return {
    port,
    list: () => slots.flatMap(({ worker }) => worker ?? []),
    restart() {
      isRestartRequested = true
      restarting ??= restartWhileRequested().finally(() => {
        restarting = undefined
      })
      return restarting
    },
    stop(signal) {
      if (!stopping.signal.aborted)
        setTimeout(killAll, stopDelayS * 1_000 + STOP_TIMEOUT_MS, 'SIGKILL').unref()
      stopping.abort()
      // When the workers no longer listen, connections are refused instead of waiting.
      slots.forEach(closeSockets)
      killAll(signal)
    },
    exited: supervision.then(async () => void (await Promise.all(runningWorkers().map(waitForExit)))),
  }
}

/** Sends a notice to a worker, if it has not exited. */
export function notifyWorker(id: string, name: string, args: unknown[]): void {
  const worker = cluster.workers?.[id]
  if (worker) sendTo(worker, { kind: 'adit:notice', name, args })
}

function closeSockets(slot: Slot): void {
  slot.sockets?.close()
  slot.sockets = undefined
}

const runningWorkers = (): Worker[] =>
  Object.values(cluster.workers ?? {}).flatMap((worker) => (worker && !worker.isDead() ? worker : []))

function killAll(signal: NodeJS.Signals): void {
  for (const worker of runningWorkers()) worker.process.kill(signal)
}

/** Resolves with the port. Rejects if the worker exits before it listens. */
function waitUntilListening(worker: Worker): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), START_TIMEOUT_MS)
  worker.on('message', (message: unknown) => {
    if (isMessage(message) && message.kind === 'adit:listening') resolve(message.port)
  })
  worker.once('error', reject)
  worker.once('exit', () => reject(new Error('The worker exited before it listened.')))
  return promise.finally(() => clearTimeout(timer))
}

async function waitForExit({ process: child }: Worker) {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return { worker: child.pid, code: child.exitCode, signal: child.signalCode }
}

async function stopReplaced(worker: Worker): Promise<void> {
  const timer = setTimeout(() => worker.process.kill('SIGKILL'), STOP_TIMEOUT_MS)
  sendTo(worker, { kind: 'adit:replaced' })
  await waitForExit(worker)
  clearTimeout(timer)
}
