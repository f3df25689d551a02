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
  /** As prom-client's registry returns them. */
  | { kind: 'adit:metrics'; metrics: unknown[] }

export const isMessage = (value: unknown): value is Message =>
  typeof (value as Message | null)?.kind === 'string' && (value as Message).kind.startsWith('adit:')

/** Has no effect if the worker has just exited. */
export function sendTo(worker: Worker, message: Message): void {
  if (worker.isConnected()) worker.process.send?.(message, undefined, {}, () => {})
}
