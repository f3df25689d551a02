// Combines concurrent lookups into few queries. A lookup is sent at once unless another is in progress; those
// that arrive meanwhile are sent together, so batches grow with the load and an idle node waits for nothing.

/** Of a query. */
const BATCH_MAX = 500
/** A batch waits no longer for an earlier query: its connection may be slow or dead. */
const WAIT_MAX_MS = 5

/**
 * Returns the value of a name, or undefined if there is none. The query that reads it always starts after the
 * call, so the result is not older than the caller: it may join a batch that waits, never one that was sent.
 */
export type BatchedLookup<V> = (name: string) => Promise<V | undefined>

export function createBatchedLookup<V>(
  read: (names: string[]) => Promise<ReadonlyMap<string, V>>,
): BatchedLookup<V> {
  let waiting: Batch<V> | undefined
  let running = 0

  function send(batch: Batch<V>): void {
    if (waiting === batch) waiting = undefined
    clearTimeout(batch.timer)
    running += 1
    read([...batch.names])
      .then(batch.resolve, batch.reject)
      .finally(() => {
        running -= 1
        if (waiting && running === 0) send(waiting)
      })
  }

  return async (name) => {
    const batch = waiting ?? { names: new Set<string>(), ...Promise.withResolvers<ReadonlyMap<string, V>>() }
    batch.names.add(name)
    if (running === 0 || batch.names.size >= BATCH_MAX) send(batch)
    else if (!waiting) {
      waiting = batch
      batch.timer = setTimeout(send, WAIT_MAX_MS, batch)
    }
    return (await batch.promise).get(name)
  }
}

interface Batch<V> extends PromiseWithResolvers<ReadonlyMap<string, V>> {
  names: Set<string>
  timer?: NodeJS.Timeout
}
