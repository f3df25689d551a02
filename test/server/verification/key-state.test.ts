// One definition of an active key: SQL and memory agree on it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keyStates } from '../../../src/lib/credentials/key-state.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { listForMembers } from '../../../src/server/domain/keys/list.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { countActiveKeys, listKeys, lockKey } from '../../../src/server/store/keys/rows.ts'
import { rowState } from '../../../src/server/store/keys/state.ts'
import { openTestServices, operator } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

for (const engine of engines)
  test(`${engine}: every key has one state, and SQL and memory agree on it`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { store } = services
    const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
    const ctx = { ...services, actor: operator, workspaceId }
    for (let index = 0; index < 5; index++) await createKey(ctx, { label: `key-${index}` })
    const [first, second] = await listKeys(store.db, workspaceId, { limit: 2 })
    for (const key of [first, second]) await revoke(ctx, key?.id as string)
    const { expiresAt } = await createKey(ctx, { expiresAt: new Date(Date.now() + 1_000).toISOString() })
    await until('it has expired', () => Date.now() >= Date.parse(expiresAt as string))

    const all = await listKeys(store.db, workspaceId, { limit: 10 })
    const counts = keyStates.map((state) => all.filter((row) => rowState(row) === state).length)
    assert.deepEqual(counts, [3, 2, 1])
    for (const state of keyStates)
      assert.deepEqual(
        pluck((await listForMembers(ctx, { state })).keys, 'id'),
        all.filter((row) => rowState(row) === state).map(({ id }) => id),
      )
    assert.equal(await countActiveKeys(store.db, workspaceId, 10), 3)
    for (const mode of ['shared', 'exclusive'] as const) {
      for (const row of all)
        assert.equal(
          await store.transaction((db) => lockKey(db, { workspaceId, id: row.id }, mode)),
          rowState(row),
        )
      assert.equal(
        await store.transaction((db) => lockKey(db, { workspaceId, id: 'tok_none' }, mode)),
        undefined,
      )
    }
  })
