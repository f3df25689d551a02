// Combines concurrent lookups into few queries. A lookup is sent at once unless another is in progress; those
// that arrive meanwhile are sent together, so batches grow with the load and an idle node waits for nothing.

/** The most keys of one query. */
const BATCH_MAX = 500
/** A batch does not wait longer for a query in progress, whose connection may be slow or dead. */
const WAIT_MAX_MS = 5

/**
 * Returns the value of a key, or undefined if there is none. The query that reads it always starts after the
 * call, so the result is never older than the call: it may join a batch that waits, not one that was sent.
 */
type BatchedLookup<V> = (key: string) => Promise<V | undefined>

export function createBatchedLookup<V>(
  read: (keys: string[]) => Promise<ReadonlyMap<string, V>>,
): BatchedLookup<V> {
  let waiting: Batch<V> | undefined
  let running = 0

  function send(batch: Batch<V>): void {
    if (waiting === batch) waiting = undefined
    clearTimeout(batch.timer)
    running += 1
    read([...batch.keys])
      .then(batch.resolve, batch.reject)
      .finally(() => {
        running -= 1
        if (waiting && running === 0) send(waiting)
      })
  }

  return async (key) => {
    const batch = waiting ?? { keys: new Set<string>(), ...Promise.withResolvers<ReadonlyMap<string, V>>() }
    batch.keys.add(key)
    if (running === 0 || batch.keys.size >= BATCH_MAX) send(batch)
    else if (!waiting) {
      waiting = batch
      batch.timer = setTimeout(send, WAIT_MAX_MS, batch)
    }
    return (await batch.promise).get(key)
  }
}

interface Batch<V> extends PromiseWithResolvers<ReadonlyMap<string, V>> {
  keys: Set<string>
  timer?: NodeJS.Timeout
}
