// Counts uses of revoked and expired keys that this node has rejected, and alerts if one is used a lot: a
// program still has it, or somebody who should not.
import { addRejections, findKeysByHash, type RejectedKey } from '../store/alerts.ts'
import { startOfHour } from '../time.ts'
import { createAlert } from './alerts.ts'
import type { Services } from './context.ts'

/** In an hour, at all nodes together. */
const MANY_ATTEMPTS = 100
/** Keys between two flushes; uses of further ones are not counted. */
const KEYS_MAX = 1_000

export class KeyRejections {
  #attempts = new Map<string, number>()

  /** By the hash of the key. */
  record(hash: string): void {
    const attempts = this.#attempts.get(hash)
    if (attempts !== undefined || this.#attempts.size < KEYS_MAX)
      this.#attempts.set(hash, (attempts ?? 0) + 1)
  }

  /** Adds them to those of other nodes. */
  async flush(services: Services): Promise<void> {
    const attempts = this.#attempts
    this.#attempts = new Map()
    if (attempts.size === 0) return
    const keys = await findKeysByHash(services.store.db, [...attempts.keys()])
    for (const { hash, ...key } of keys) await addAttempts(services, key, attempts.get(hash) ?? 0)
  }
}

function addAttempts(services: Services, key: RejectedKey, attempts: number): Promise<void> {
  const { id, label, workspaceId } = key
  return services.store.transaction(async (db) => {
    const hour = startOfHour(services.clock())
    const total = await addRejections(db, { keyId: id, hour, attempts })
    if (total < MANY_ATTEMPTS) return
    await createAlert(db, services, {
      kind: 'key-rejected',
      workspaceId,
      subjectId: id,
      threshold: String(MANY_ATTEMPTS),
      title: 'gets many requests with a revoked or expired API key',
      text:
        `The key ${id} was rejected ${total} times within an hour. Find the program that still uses it. If you ` +
        'do not know of any, somebody else may have the key.',
      event: { workspaceId, type: 'key.rejected', data: { key: { id, label }, attempts: total } },
    })
  })
}
