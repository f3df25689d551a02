/** Counts by key. A key whose count is 0 takes no memory. */
export class KeyedCounter {
  readonly #counts = new Map<string, number>()

  get(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  add(key: string, change: 1 | -1): void {
    const count = this.get(key) + change
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }

  /** The key with the largest count; the count is 0 if there is none. Takes linear time. */
  largest(): [key: string, count: number] {
    let [key, count] = ['', 0]
    for (const entry of this.#counts) if (entry[1] > count) [key, count] = entry
    return [key, count]
  }
}
