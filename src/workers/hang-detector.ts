// Kills workers that hang, so that they are replaced like those that exit.
import cluster, { type Worker } from 'node:cluster'
import type { Logger } from 'pino'
import { isMessage, sendTo } from './messages.ts'

const PING_INTERVAL_MS = 1_000
/** Pings are counted, not time: none is sent while the machine is suspended, or this process is stopped. */
const UNANSWERED_MAX = 10

export function killHungWorkers(log: Logger): void {
  /** Pings without a response, of each worker that has sent a message. Before that it loads its program. */
  const unanswered = new Map<Worker, number>()
  cluster.on('message', (worker, message: unknown) => {
    if (!isMessage(message) || worker.isDead()) return
    if (message.kind === 'adit:pong' || !unanswered.has(worker)) unanswered.set(worker, 0)
  })
  cluster.on('exit', (worker) => unanswered.delete(worker))
  function ping(): void {
    for (const [worker, count] of unanswered)
      if (count < UNANSWERED_MAX) {
        unanswered.set(worker, count + 1)
        sendTo(worker, { kind: 'adit:ping' })
      } else {
        log.error({ worker: worker.process.pid, pings: count }, 'worker does not respond; killing it')
        unanswered.delete(worker)
        worker.process.kill('SIGKILL')
      }
  }
  setInterval(ping, PING_INTERVAL_MS).unref()
}
