// What the primary and its workers send each other.
import type { Worker } from 'node:cluster'

export type Message =
  /** To all other workers. */
  | { kind: 'adit:broadcast'; payload: string }
  | { kind: 'adit:metrics-request' }
  /** From a worker that accepts connections. */
  | { kind: 'adit:listening'; port: number }
  /** To a worker in whose place another listens: it completes its requests and ends. */
  | { kind: 'adit:replaced' }
  /** From a worker, to call a function of the primary; and its result. */
  | { kind: 'adit:call'; id: number; name: string; args: unknown[] }
  | { kind: 'adit:result'; id: number; result: unknown }
  /** As prom-client's registry returns them. */
  | { kind: 'adit:metrics'; metrics: unknown[] }

export const isMessage = (value: unknown): value is Message =>
  typeof (value as Message | null)?.kind === 'string' && (value as Message).kind.startsWith('adit:')

/** Without effect if the worker has just ended. */
export function sendTo(worker: Worker, message: Message): void {
  if (worker.isConnected()) worker.process.send?.(message, undefined, {}, () => {})
}
