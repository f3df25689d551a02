// Counts uses of revoked and expired keys that this node has rejected, and alerts if one is used a lot: a
// program still has it, or somebody who should not.

import { startOfHour } from '../../../lib/time.ts'
import { addRejections, findKeysByHash, type RejectedKey } from '../../store/notices/alerts.ts'
import type { Services } from '../context.ts'
import { createAlert } from '../notices/alerts.ts'

/** Attempts in an hour, at all nodes together. */
const MANY_ATTEMPTS = 100
/** Keys and hours between two flushes; uses of further keys are not counted. */
const COUNTS_MAX = 1_000

interface Count {
  hash: string
  hour: number
  attempts: number
}

export class KeyRejections {
  readonly #clock: () => number
  /** Counts by hour and hash. */
  #counts = new Map<string, Count>()

  constructor(clock: () => number) {
    this.#clock = clock
  }

  /** Counts one attempt with the key of this hash. */
  record(hash: string): void {
    this.#add({ hash, hour: startOfHour(this.#clock()), attempts: 1 })
  }

  #add(count: Count): void {
    const id = `${count.hour} ${count.hash}`
    const existing = this.#counts.get(id)
    if (existing) existing.attempts += count.attempts
    else if (this.#counts.size < COUNTS_MAX) this.#counts.set(id, count)
  }

  /** Adds the counts to those of other nodes. Counts that cannot be written stay for the next flush. */
  async flush(services: Services): Promise<void> {
    const counts = [...this.#counts.values()]
    if (counts.length === 0) return
    this.#counts = new Map()
    try {
      const found = await findKeysByHash(services.store.db, [...new Set(counts.map(({ hash }) => hash))])
      const keys = new Map(found.map((key) => [key.hash, key]))
      for (let [count] = counts; count; [count] = counts) {
        const key = keys.get(count.hash)
        if (key) await addAttempts(services, key, count)
        counts.shift()
      }
    } catch (error) {
      // The one that failed is the last one next time, so that it does not block others.
      const [failed, ...others] = counts
      for (const count of [...others, failed as Count]) this.#add(count)
      throw error
    }
  }
}

function addAttempts(services: Services, key: RejectedKey, { hour, attempts }: Count): Promise<void> {
  const { id, label, workspaceId } = key
  return services.store.transaction(async (db) => {
    const total = await addRejections(db, { keyId: id, hour, attempts })
    if (total < MANY_ATTEMPTS) return
    await createAlert(db, services, {
      kind: 'key-rejected',
      workspaceId,
      subjectId: id,
      dedupKey: String(MANY_ATTEMPTS),
      title: 'has high traffic from an inactive API key',
      text:
        `The key ${id} is revoked or expired, and was rejected ${total} times within an hour. Find the program ` +
        'that still uses it. If there is none, someone else may have the key.',
      event: { workspaceId, type: 'key.rejected', data: { key: { id, label }, attempts: total } },
    })
  })
}
