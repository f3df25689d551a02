// A bounded LRU cache.

export interface LruCache<V> {
  get(key: string): V | undefined
  set(key: string, value: V): void
  delete(key: string): void
  clear(): void
}

/**
 * Two generations instead of an exact order: when the current one reaches half of the maximum weight, it
 * becomes the previous one, and the entries of the one before that are evicted. A hit in the current
 * generation is one lookup and moves nothing.
 */
export function createLruCache<V>(max: number, weigh: (value: V) => number = () => 1): LruCache<V> {
  const half = Math.ceil(max / 2)
  let current = new Map<string, V>()
  let previous = new Map<string, V>()
  let currentWeight = 0

  function set(key: string, value: V): void {
    if (currentWeight >= half) {
      previous = current
      current = new Map()
      currentWeight = 0
    }
    const replaced = current.get(key)
    currentWeight += weigh(value) - (replaced === undefined ? 0 : weigh(replaced))
    current.set(key, value)
  }

  return {
    get(key) {
      const value = current.get(key)
      if (value !== undefined) return value
      const older = previous.get(key)
      if (older !== undefined) set(key, older)
      return older
    },
    set,
    delete(key) {
      const removed = current.get(key)
      if (removed !== undefined) currentWeight -= weigh(removed)
      current.delete(key)
      previous.delete(key)
    },
    clear() {
      current = new Map()
      previous = new Map()
      currentWeight = 0
    },
  }
}
