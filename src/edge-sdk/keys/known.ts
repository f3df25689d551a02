// What this edge has been told about keys and workspaces, by what names them in the stream of changes.

/** Beyond the maximum, the entry that was set first is dropped. */
export class Known<V> {
  readonly #entries = new Map<string, V>()
  readonly #max: number
  #isComplete = true

  constructor(max: number) {
    this.#max = max
  }

  /** Whether nothing was dropped: then the stream is about others if it names something unknown. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  get(name: string): V | undefined {
    return this.#entries.get(name)
  }

  set(name: string, value: V): void {
    this.#entries.delete(name)
    this.#entries.set(name, value)
    if (this.#entries.size <= this.#max) return
    const [oldest = ''] = this.#entries.keys()
    this.#entries.delete(oldest)
    this.#isComplete = false
  }

  delete(name: string): void {
    this.#entries.delete(name)
  }
}
