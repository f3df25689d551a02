// A bounded memory that forgets what was not asked for in a long time.

export interface LruCache<V> {
  get(key: string): V | undefined
  set(key: string, value: V): void
  delete(key: string): void
  clear(): void
}

/**
 * Two generations instead of an order by age: when the young one weighs half of the memory, it becomes the old one, and what
 * was not asked for since goes with the one before. Asking costs one look-up, and nothing is moved for it.
 */
export function createLruCache<V>(max: number, weigh: (value: V) => number = () => 1): LruCache<V> {
  const half = Math.ceil(max / 2)
  let young = new Map<string, V>()
  let old = new Map<string, V>()
  let youngWeight = 0

  function set(key: string, value: V): void {
    if (youngWeight >= half) {
      old = young
      young = new Map()
      youngWeight = 0
    }
    const before = young.get(key)
    youngWeight += weigh(value) - (before === undefined ? 0 : weigh(before))
    young.set(key, value)
  }

  return {
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const kept = old.get(key)
      if (kept !== undefined) set(key, kept)
      return kept
    },
    set,
    delete(key) {
      const gone = young.get(key)
      if (gone !== undefined) youngWeight -= weigh(gone)
      young.delete(key)
      old.delete(key)
    },
    clear() {
      young = new Map()
      old = new Map()
      youngWeight = 0
    },
  }
}
