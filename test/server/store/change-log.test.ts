// The change log: concurrent changes are one sequence, in which each entry names the one before it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { appendChange, readChanges, readHead } from '../../../src/server/store/change-log/entries.ts'
import { openTestServices } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

for (const engine of engines)
  test(`${engine}: concurrent changes are appended without a gap, and a failed one leaves none`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { store } = services
    const start = await readHead(store.db)
    const appended = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        store
          .transaction(async (db) => {
            const change = { kind: 'key' as const, subjectId: `key ${index}`, hash: `hash ${index}` }
            const result = await appendChange(db, {
              ...change,
              expiresAt: index % 2 === 0 ? index : null,
              checksum: `checksum ${index}`,
              at: index,
            })
            if (index % 5 === 0) throw new Error('rolled back')
            return result
          })
          .catch(() => undefined),
      ),
    )
    const committed = appended.filter((change) => change !== undefined)
    assert.equal(committed.length, 32)
    const read = await readChanges(store.db, start, await readHead(store.db))
    assert.deepEqual(
      read?.map((change) => ({ ...change })),
      committed.toSorted((a, b) => a.sequence - b.sequence),
    )
  })
