// A priority queue of events by time (binary heap). Events of the same time keep their order.

export interface Timed<T> {
  at: number
  order: number
  event: T
}

export function createEventQueue<T>() {
  const heap: Timed<T>[] = []
  let added = 0

  const isBefore = (a: Timed<T>, b: Timed<T>) => a.at < b.at || (a.at === b.at && a.order < b.order)

  function moveUp(start: number): void {
    const item = heap[start] as Timed<T>
    let index = start
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(item, heap[parent] as Timed<T>)) break
      heap[index] = heap[parent] as Timed<T>
      index = parent
    }
    heap[index] = item
  }

  function moveDown(item: Timed<T>): void {
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Timed<T>, heap[child] as Timed<T>))
        child += 1
      if (!isBefore(heap[child] as Timed<T>, item)) break
      heap[index] = heap[child] as Timed<T>
      index = child
    }
    heap[index] = item
  }

  return {
    add(at: number, event: T): void {
      heap.push({ at, order: added++, event })
      moveUp(heap.length - 1)
    },
    take(): Timed<T> | undefined {
      const first = heap[0]
      const last = heap.pop()
      if (first && last && heap.length > 0) moveDown(last)
      return first
    },
  }
}
