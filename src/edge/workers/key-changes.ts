// Applies changes of keys and workspaces at all workers, in two rounds. A request may be admitted by one
// worker and carried by another: the first round closes clients everywhere, so that nothing new begins, and
// the second ends what was between workers.
import type { KeyChange, Round } from './messages.ts'

type Send = (worker: string, sequence: number, change: KeyChange, round: Round) => void

export class KeyChanges {
  readonly #send: Send
  /** For each worker, what resolves the waits for changes that it has not applied yet, by their numbers. */
  readonly #waiting = new Map<string, Map<number, () => void>>()
  /** The number of the last change that was sent. */
  #sequence = 0

  constructor(send: Send) {
    this.#send = send
  }

  /** It has verified no key yet, so earlier changes do not concern it. */
  addWorker(worker: string): void {
    this.#waiting.set(worker, new Map())
  }

  /** It has exited, so it carries nothing. A worker that hangs is killed, so waiting for it ends. */
  removeWorker(worker: string): void {
    const waiting = this.#waiting.get(worker)
    this.#waiting.delete(worker)
    for (const done of waiting?.values() ?? []) done()
  }

  onApplied(worker: string, sequence: number): void {
    this.#waiting.get(worker)?.get(sequence)?.()
    this.#waiting.get(worker)?.delete(sequence)
  }

  /**
   * Resolves when nothing of the key or workspace is passed on, by workers or by edges that got it from them.
   */
  async apply(change: KeyChange): Promise<void> {
    await this.applyRound(change, 'close')
    await this.applyRound(change, 'end')
  }

  /** Resolves when all workers that exist now have applied the change, or have exited. */
  async applyRound(change: KeyChange, round: Round): Promise<void> {
    this.#sequence += 1
    const sequence = this.#sequence
    await Promise.all(
      Array.from(this.#waiting, ([worker, waiting]) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.set(sequence, resolve)
        this.#send(worker, sequence, change, round)
        return promise
      }),
    )
  }
}
