// Combines concurrent lookups into few queries. A lookup is sent at once unless a query is in progress; those
// that arrive meanwhile are sent together, so batches grow with the load and an idle node does not wait.

/** Maximum of keys in one query. */
const BATCH_MAX = 500
/** How long a batch waits for the query in progress, whose connection may be slow or dead. */
const WAIT_MAX_MS = 5

/**
 * The function that is returned never joins a query that was already sent, so its result is not older than
 * its call. It is undefined if the key has no value.
 */
export function createBatchedLookup<V>(read: (keys: string[]) => Promise<ReadonlyMap<string, V>>) {
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

  return async (key: string): Promise<V | undefined> => {
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
