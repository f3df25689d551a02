// The database adapter of better-auth: conditions mean what they mean in better-auth's own adapters.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Where } from 'better-auth/types'
import { storeAdapter } from '../../../src/server/auth/adapter.ts'
import { addMember } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

const options = {
  user: { modelName: 'users' },
  session: { modelName: 'sessions', fields: { userId: 'user_id', expiresAt: 'expires_at' } },
}

for (const engine of engines) {
  test(`${engine}: mode "insensitive" ignores the case of the column and of the value`, async (t) => {
    const server = await serve(t, { engine })
    await addMember(server, 'Ann', 'owner')
    const adapter = storeAdapter(server.services.store)(options)
    const count = (where: Omit<Where, 'field' | 'mode'>) =>
      adapter.count({ model: 'user', where: [{ field: 'name', mode: 'insensitive', ...where }] })
    assert.equal(await count({ value: 'aNN' }), 1)
    assert.equal(await count({ operator: 'in', value: ['ANN', 'Bob'] }), 1)
    assert.equal(await count({ operator: 'ne', value: 'ANN' }), 0)
  })

  test(`${engine}: null equals only null, and no comparison with it is true`, async (t) => {
    const server = await serve(t, { engine })
    await addMember(server, 'Ann', 'owner')
    const adapter = storeAdapter(server.services.store)(options)
    const count = (field: string, operator: NonNullable<Where['operator']>) =>
      adapter.count({ model: 'user', where: [{ field, operator, value: null }] })
    assert.deepEqual([await count('image', 'eq'), await count('image', 'ne')], [1, 0])
    assert.deepEqual([await count('name', 'eq'), await count('name', 'ne')], [0, 1])
    for (const operator of ['lt', 'lte', 'gt', 'gte'] as const)
      assert.equal(await count('name', operator), 0, operator)
  })
}
