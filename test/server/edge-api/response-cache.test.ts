// Verifications from the response cache: the same as those by Fastify.
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { provision } from '../../../src/server/domain/workspaces/manage.ts'
import { addEdge, addWorkspace, operator, serve, serveWithEdge } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { collectText } from '../../support/network/collect.ts'
import { readSource, stableContent } from '../../support/network/response-source.ts'
import { until } from '../../support/until.ts'

for (const engine of engines)
  test(`${engine}: a cached result equals the first, until key or workspace change`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const { ctx, key } = await addWorkspace(server, 'new')
    const first = await edge.verify(key.token)
    let again = first
    await until('a cache hit', async () => {
      again = await edge.verify(key.token)
      return readSource(again) !== readSource(first)
    })
    assert.deepEqual(stableContent(again), stableContent(first))
    assert.equal(again.json.workspace.provisioned, false)
    await provision(server.services, operator, 'new')
    for (let turn = 0; turn < 3; turn++)
      assert.equal((await edge.verify(key.token)).json.workspace.provisioned, true)
    await revoke(ctx, key.id)
    for (let turn = 0; turn < 3; turn++)
      assert.deepEqual((await edge.verify(key.token)).json, { valid: false, reason: 'revoked' })
  })

test('every valid encoding of the body is accepted, and an invalid body is 400', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { token } = server.key
  const edge = await addEdge(server)
  const verify = (body: string) => edge.post('/keys/verify', body)
  for (let turn = 0; turn < 2; turn++) await edge.verify(token)
  const expected = (await edge.verify(token)).text
  for (const body of [
    `{ "key": "${token}" }`,
    `{"key":"${token}","more":1}`,
    `{"more":1,"key":"${token}"}`,
    `{"key":"\\u0061${token.slice(1)}"}`,
  ])
    assert.equal((await verify(body)).text, expected, body)
  for (const body of [
    '',
    '{}',
    '[]',
    '{"key":1}',
    '{"key":null}',
    `{"key":"${token}"`,
    `{"key":"${'x'.repeat(201)}"}`,
  ])
    assert.equal((await verify(body)).status, 400, body)
  assert.deepEqual((await verify(`{"key":"${token}x"}`)).json, { valid: false, reason: 'unknown' })
  for (const credential of [token, 'adit_edge_nonsense', null]) {
    const init = { key: credential, json: { key: token } }
    assert.equal((await edge.call('POST', '/keys/verify', init)).status, 401)
  }
})

test('split bodies, pipelined requests and a partial request each get the right response', async (t) => {
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  for (let turn = 0; turn < 2; turn++) await edge.verify(server.key.token)
  const body = JSON.stringify({ key: server.key.token })
  const head =
    'POST /edge/v1/keys/verify HTTP/1.1\r\nHost: adit\r\nContent-Type: application/json\r\n' +
    `Authorization: Bearer ${edge.token}\r\nContent-Length: ${body.length}\r\n\r\n`
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  const seen = collectText(socket)
  const statuses = () => [...seen().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
  socket.write(head + body.slice(0, 20))
  await sleep(30)
  socket.write(body.slice(20))
  await until('the first response', () => statuses().length === 1)
  socket.write((head + body).repeat(5))
  await until('all responses', () => [...seen().matchAll(/"valid":true/g)].length === 6)
  assert.deepEqual(statuses(), Array(6).fill(200))
  socket.write(head + body.slice(0, 20))
  await sleep(30)
  socket.destroy()
  assert.equal((await edge.verify(server.key.token)).json.valid, true)
})
