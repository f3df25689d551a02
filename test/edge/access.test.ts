// Access matrix of the edge API: every operation with every kind of caller.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { edgeOperations } from '../../src/contract/edge.ts'
import type { Operation } from '../../src/contract/operation.ts'
import { createSecret } from '../../src/credentials/secret.ts'
import { revoke as revokeEdge } from '../../src/domain/edges.ts'
import { engines } from '../support/databases.ts'
import { createResponseValidator } from '../support/openapi.ts'
import { addEdge, operator, serve } from '../support/server.ts'

const bodies: Record<string, string> = {
  'keys.verify': '{"key":"adit_x"}',
  'usage.report': '{"epoch":"e1"}',
}

for (const engine of engines) {
  test(`${engine}: every edge operation accepts a valid edge, and no other caller`, async (t) => {
    const server = await serve(t, { engine })
    const valid = await addEdge(server)
    const revoked = await addEdge(server, 'gone')
    await revokeEdge(server.services, operator, revoked.id)
    const validateResponse = createResponseValidator((await valid.call('GET', '/openapi.json')).json)
    const actors = {
      anonymous: null,
      'a workspace key': server.key.token,
      'a revoked edge': revoked.token,
      'an unknown edge': createSecret('edge', server.services.random),
      'half a credential': valid.token.slice(0, -1),
      'a valid edge': valid.token,
    }
    for (const [name, key] of Object.entries(actors))
      for (const operation of edgeOperations as readonly Operation[]) {
        // A stream does not end; its own tests read it.
        if (operation.response.stream && name === 'a valid edge') continue
        const body = bodies[operation.id]
        const response = await valid.call(operation.method, operation.path, {
          key: null,
          headers: {
            ...(key && operation.id === 'requests.authorize'
              ? { 'x-adit-edge': key, authorization: `Bearer ${server.key.token}` }
              : key && { authorization: `Bearer ${key}` }),
            'content-type': 'application/json',
          },
          ...(body && { body }),
        })
        const allowed = operation.access === 'anyone' || name === 'a valid edge'
        assert.equal(
          response.status,
          allowed ? operation.response.status : 401,
          `${name}: ${operation.id} ${response.text}`,
        )
        assert.equal(response.headers.get('access-control-allow-origin'), null)
        validateResponse(operation.path, operation.method, response)
      }
  })

  test(`${engine}: a revoked edge is rejected on the next request`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addEdge(server)
    assert.equal((await edge.verify(server.key.token)).status, 200)
    await revokeEdge(server.services, operator, edge.id)
    const { status, json } = await edge.verify(server.key.token)
    assert.equal(status, 401)
    assert.match(json.message, /revoked/)
  })
}

test('an unknown path of the edge API is 404 in JSON', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server)
  for (const [method, path] of [
    ['GET', '/keys/verify'],
    ['GET', '/nope'],
    ['POST', '/authorize'],
    ['OPTIONS', '/usage'],
  ] as const)
    assert.equal((await edge.call(method, path)).text, '{"error":"not_found"}', `${method} ${path}`)
})
