// A real nginx with the configuration that the documents show.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { serveWithEdge } from '../../support/api/server.ts'
import { listen } from '../../support/network/listen.ts'
import { freePort } from '../../support/processes/ports.ts'
import { nginx, startNginx } from '../../support/proxies/nginx.ts'

test('nginx accepts a valid key, rejects a revoked one, and fails closed without Adit', async (t) => {
  if (!nginx) return t.skip('nginx is not installed here')
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const application = createServer((request, response) => response.end(JSON.stringify(request.headers)))
  const applicationPort = await listen(t, application)
  const port = await freePort()
  await startNginx(t, port, 'docs/edges/nginx.conf', {
    '127.0.0.1:8088': `127.0.0.1:${port}`,
    '127.0.0.1:8080': new URL(server.url).host,
    '127.0.0.1:3000': `127.0.0.1:${applicationPort}`,
    'adit_edge_THE-CREDENTIAL-OF-THIS-EDGE': edge.token,
  })
  const send = (headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}/`, { ...init, headers })
  const authorization = `Bearer ${server.key.token}`

  assert.equal((await send()).status, 401)
  assert.equal((await send({ authorization: `Bearer ${edge.token}` })).status, 401)
  const forged = { 'x-adit-workspace': 'other', 'x-adit-key-id': 'tok_other', 'x-adit-edge': 'x' }
  const admitted = await send({ authorization, ...forged })
  assert.equal(admitted.status, 200)
  const seen = (await admitted.json()) as Record<string, string>
  assert.equal(seen['x-adit-workspace'], 'acme')
  assert.equal(seen['x-adit-key-id'], server.key.id)
  assert.equal(seen.authorization, undefined)
  const body = 'x'.repeat(50_000)
  assert.equal(
    (await send({ authorization, 'content-type': 'text/plain' }, { method: 'POST', body })).status,
    200,
  )

  await server.call('DELETE', `/tokens/${server.key.id}`)
  assert.equal((await send({ authorization })).status, 401)
  await server.stop()
  assert.equal((await send({ authorization })).status, 500)
})
