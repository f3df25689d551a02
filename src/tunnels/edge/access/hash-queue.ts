// Runs password hashes one at a time, because each takes a thread and 16 MiB. Groups take turns, so that one
// with many hashes delays the others by one hash at most.

const WAITING_PER_GROUP_MAX = 20
const WAITING_MAX = 100

export class HashQueue {
  /** In the order of their next turn. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #waitingCount = 0
  #isRunning = false

  /** Undefined if too many are waiting already. */
  run<T>(group: string, hash: () => Promise<T>): Promise<T> | undefined {
    const inGroup = this.#waiting.get(group) ?? []
    if (inGroup.length >= WAITING_PER_GROUP_MAX || this.#waitingCount >= WAITING_MAX) return undefined
    const { promise: turn, resolve: start } = Promise.withResolvers<void>()
    this.#waiting.set(group, inGroup)
    inGroup.push(start)
    this.#waitingCount += 1
    this.#startNext()
    return turn.then(hash).finally(() => {
      this.#isRunning = false
      this.#startNext()
    })
  }

  #startNext(): void {
    const [next] = this.#waiting
    if (this.#isRunning || !next) return
    const [group, inGroup] = next
    this.#isRunning = true
    this.#waitingCount -= 1
    this.#waiting.delete(group)
    const start = inGroup.shift()
    if (inGroup.length > 0) this.#waiting.set(group, inGroup)
    start?.()
  }
}
