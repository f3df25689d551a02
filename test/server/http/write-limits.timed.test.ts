// How much callers that write as fast as their limit allows delay others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR_MS } from '../../../src/lib/time.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { addMember } from '../../support/accounts/users.ts'
import { addWorkspace, serve, type TestResponse } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { assertUndelayed } from '../../support/network/latency.ts'
import { sendUntilLimited } from './write-burst.ts'

for (const engine of engines) {
  test(`${engine}: a key and a user that write as fast as they may delay others by less than 300 ms`, async (t) => {
    const clock = { now: Date.now() }
    const server = await serve(t, { engine, clock: () => clock.now })
    const { key } = await addWorkspace(server, 'other')
    const ann = await addMember(server, 'Ann', 'owner')
    const { ctx } = server
    const targets = ['/workspace', '/tokens'].map((path) => ({
      url: `${server.url}/api/v1${path}`,
      key: key.token,
    }))
    await assertUndelayed(t, targets, async () => {
      // Ann may write again.
      clock.now += HOUR_MS
      const { token } = await createKey(ctx)
      await Promise.all([
        sendUntilLimited(() => server.call('DELETE', '/tokens/tok_unknown', { key: token })),
        sendUntilLimited(() => ann.post('/workspaces/acme/name', { name: `Acme ${Math.random()}` })),
      ])
    })
  })

  test(`${engine}: a key and a user with 100 writes at once each delay writes of others by less than 300 ms`, async (t) => {
    const env = { ADIT_WRITES_PER_HOUR: '1000000', ADIT_KEYS_PER_WORKSPACE: '20000' }
    const server = await serve(t, { engine, env })
    const { key } = await addWorkspace(server, 'other')
    const ann = await addMember(server, 'Ann', 'owner')
    const target = { url: `${server.url}/api/v1/tokens`, key: key.token, method: 'POST' as const }
    const repeat = async (send: () => Promise<TestResponse>) => {
      for (let count = 0; count < 10; count++) assert.ok((await send()).status < 300)
    }
    await assertUndelayed(t, [target], () =>
      Promise.all(
        Array.from({ length: 100 }, (_, index) => [
          repeat(() => server.post('/tokens', {})),
          repeat(() => ann.post('/workspaces/acme/name', { name: `Acme ${index}` })),
        ]).flat(),
      ),
    )
  })
}
