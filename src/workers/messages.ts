// The messages between the primary and its workers.
import type { Worker } from 'node:cluster'

export type Message =
  /** From a worker, passed on to all others. */
  | { kind: 'adit:broadcast'; payload: string }
  | { kind: 'adit:metrics-request' }
  /** From a worker that accepts connections. */
  | { kind: 'adit:listening'; port: number }
  /** To a worker that another one replaces: it completes its requests and exits. */
  | { kind: 'adit:replaced' }
  /** From a worker, to call a function of the primary, and the response with the result. */
  | { kind: 'adit:call'; id: number; name: string; args: unknown[] }
  | { kind: 'adit:result'; id: number; result: unknown }
  /** From either side, without a response. */
  | { kind: 'adit:notice'; name: string; args: unknown[] }
  /** To a worker, which responds unless it hangs. */
  | { kind: 'adit:ping' }
  | { kind: 'adit:pong' }
  /** As prom-client's registry returns them. */
  | { kind: 'adit:metrics'; metrics: unknown[] }

export const isMessage = (value: unknown): value is Message =>
  typeof (value as Message | null)?.kind === 'string' && (value as Message).kind.startsWith('adit:')

/** More messages than a worker that reads them ever has waiting. */
const UNREAD_MAX = 100_000
/** Messages that wait in the memory of this process, because the worker does not read them. */
const unread = new WeakMap<Worker, number>()

/** Has no effect if the worker has just exited. A worker that does not read its messages is killed. */
export function sendTo(worker: Worker, message: Message): void {
  if (!worker.isConnected()) return
  const count = (unread.get(worker) ?? 0) + 1
  if (count > UNREAD_MAX) {
    worker.process.kill('SIGKILL')
    return
  }
  unread.set(worker, count)
  worker.process.send?.(message, undefined, {}, () => unread.set(worker, (unread.get(worker) ?? 1) - 1))
}
