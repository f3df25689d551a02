// Access matrix of the edge API: every operation with every kind of caller.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { apis } from '../../../src/contract/apis.ts'
import { claimTunnels, syncTunnels } from '../../../src/contract/edge/tunnels.ts'
import type { Operation } from '../../../src/contract/operation.ts'
import { createSecret } from '../../../src/lib/credentials/secret.ts'
import { revoke as revokeEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { createResponseValidator } from '../../support/api/openapi.ts'
import { addEdge, operator, serve, serveWithEdge } from '../../support/api/server.ts'
import { counter, today } from '../../support/api/usage.ts'
import { engines } from '../../support/databases/create.ts'
import { connectRaw } from '../../support/network/raw.ts'

const exampleBody = ({ body }: Operation) => JSON.stringify((body as { examples?: unknown[] }).examples?.[0])

const bodies: Record<string, string> = {
  'keys.verify': '{"key":"adit_x"}',
  'usage.report': '{"epoch":"e1"}',
  'hosts.find': '{"host":"x"}',
  'tunnels.claim': exampleBody(claimTunnels),
  'tunnels.sync': exampleBody(syncTunnels),
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
      for (const operation of apis.edge.operations as readonly Operation[]) {
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

  test(`${engine}: a request that is completed after the revocation of its edge is rejected`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    // The second response is rendered by the response cache.
    for (let turn = 0; turn < 2; turn++) assert.equal((await edge.verify(server.key.token)).status, 200)
    const report = { epoch: 'late', counters: [counter({ day: today(), requests: 7 })] }
    const login = { version: '0.1.0', op: 'Login', content: { metas: { token: server.key.token } } }
    const requests: Record<string, unknown> = {
      '/edge/v1/keys/verify': { key: server.key.token },
      '/edge/v1/usage': report,
      [`/edge/frp/${edge.token}`]: login,
      [`/edge/sish/${edge.token}`]: { password: server.key.token, user: 'acme' },
    }
    const begun = Object.entries(requests).flatMap(([path, body]) =>
      [0, 5].map((sent) => {
        const json = JSON.stringify(body)
        const socket = connectRaw(server.url)
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: adit\r\nConnection: keep-alive\r\nContent-Type: application/json\r\n` +
            `Authorization: Bearer ${edge.token}\r\nContent-Length: ${json.length}\r\n\r\n${json.slice(0, sent)}`,
        )
        return { path, socket, rest: json.slice(sent) }
      }),
    )
    await sleep(200)
    await revokeEdge(server.services, operator, edge.id)
    for (const { path, socket, rest } of begun) {
      socket.write(rest)
      // frp reads the result from the body.
      await socket.receives(path.startsWith('/edge/frp') ? '"reject":true' : 'HTTP/1.1 401 ')
      socket.close()
    }
    const stored = await server.services.store.db.selectFrom('usage_counters').selectAll().execute()
    assert.deepEqual(stored, [])
  })
}

test('an unknown path of the edge API is 404 in JSON', async (t) => {
  const { edge } = await serveWithEdge(t, { engine: 'sqlite' })
  for (const [method, path] of [
    ['GET', '/keys/verify'],
    ['GET', '/nope'],
    ['POST', '/authorize'],
    ['OPTIONS', '/usage'],
  ] as const)
    assert.equal((await edge.call(method, path)).text, '{"error":"not_found"}', `${method} ${path}`)
})
