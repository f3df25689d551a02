// Access matrix: every operation of the APIs for keys with every kind of caller. New operations are covered
// automatically.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Api, apis } from '../../../src/contract/apis.ts'
import type { Operation } from '../../../src/contract/operation.ts'
import { variants } from '../../../src/contract/variants.ts'
import { createSecret } from '../../../src/lib/credentials/secret.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { addMember } from '../../support/accounts/users.ts'
import { createResponseValidator } from '../../support/api/openapi.ts'
import { caller, operator, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { setRows } from '../../support/databases/rows.ts'

async function listActors(server: TestServer) {
  const { ctx } = server
  const revoked = await createKey(ctx, { label: 'revoked' })
  await revoke(ctx, revoked.id)
  const edge = await createEdge(server.services, operator, 'fra-1')
  /** In variant B, members get one by a request: here it becomes personal afterwards. */
  const createPersonal = async (name: string) => {
    const member = await addMember(server, name, 'member')
    const { id, token } = await createKey(ctx, { label: name })
    await setRows(server.services, 'api_keys', { user_id: member.id }, { id })
    return { member, token }
  }
  const [own, left] = [await createPersonal('Mia'), await createPersonal('Max')]
  assert.equal((await left.member.remove('/workspaces/acme/membership')).status, 200)
  return {
    anonymous: { key: null, admitted: false },
    'a revoked key': { key: revoked.token, admitted: false },
    'an unknown key': { key: createSecret('key', server.services.random), admitted: false },
    'an edge': { key: edge.token, admitted: false },
    'half a key': { key: server.key.token.slice(0, 30), admitted: false },
    'the personal key of a member': { key: own.token, admitted: true },
    'the personal key of a member who has left': { key: left.token, admitted: false },
    'a valid key': { key: server.key.token, admitted: true },
  }
}

for (const engine of engines)
  for (const variant of ['A', 'B'] as const)
    test(`${engine}: variant ${variant}: every operation allows exactly its access level`, async (t) => {
      const server = await serve(t, { engine, env: { ADIT_API_VARIANT: variant } })
      const actors = Object.entries(await listActors(server))
      for (const { prefix, operations } of [apis[`public${variant}`], apis.workspace] as Api[]) {
        const call = caller(server.url + prefix, server.key.token)
        const validateResponse = createResponseValidator((await call('GET', '/openapi.json')).json)
        for (const [name, { key, admitted }] of actors)
          for (const operation of operations) {
            const response = await call(operation.method, operation.path.replace('{id}', 'tok_none'), { key })
            const allowed = operation.access === 'anyone' || admitted
            assert.equal(response.status !== 401, allowed, `${name}: ${operation.id} → ${response.status}`)
            validateResponse(operation.path, operation.method, response)
          }
      }
    })

test('every operation is in the OpenAPI document, and every documented one is served', async (t) => {
  for (const variant of ['A', 'B'] as const) {
    const { url, call } = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    const described = Object.keys((await call('GET', '/openapi.json')).json.paths)
    assert.deepEqual(
      described.sort(),
      [...new Set((variants[variant] as readonly Operation[]).map((operation) => operation.path))].sort(),
    )
    for (const path of described.filter((path) => !path.includes('{')))
      assert.notEqual((await call('GET', path)).status, 404, path)
    for (const path of ['/healthz', '/readyz', '/docs'])
      assert.equal((await fetch(url + path)).status, 200, path)
  }
})
