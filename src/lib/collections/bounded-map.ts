/** A map that evicts the entry that was set least recently if there are more than `max`. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #max: number
  #evictions = 0

  constructor(max: number) {
    super()
    this.#max = max
  }

  /** How many entries were evicted. */
  get evictions(): number {
    return this.#evictions
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#max) {
      this.delete(this.keys().next().value as K)
      this.#evictions += 1
    }
    return this
  }
}
