// Closing a tunnel with an API key.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { ReportedTunnel } from '../../../src/contract/edge/tunnel-fields.ts'
import { revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { addMember } from '../../support/accounts/users.ts'
import { addWorkspace, type Call, caller, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { simulateEdge } from '../../support/edges/connected-edge.ts'
import { addTunnelEdge, publicIdOf, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { until } from '../../support/until.ts'

const apiOf = ({ url, key }: Pick<TestServer, 'url' | 'key'>, token = key.token) =>
  caller(`${url}/workspace/v1`, token)

const listIds = async (call: Call): Promise<string[]> =>
  (await call('GET', '/tunnels')).json.tunnels.map(({ id }: { id: string }) => id)

async function listClosings(server: TestServer) {
  const olga = await addMember(server, 'Olga', 'owner')
  return async () => {
    const { entries } = (await olga.get('/workspaces/acme/audit?action=tunnel.closed')).json
    return (entries as { actor: object; target: object }[]).map(({ actor, target }) => ({ actor, target }))
  }
}

for (const engine of engines) {
  test(`${engine}: closing returns when each edge has reported the tunnel as closed, and is audited once`, async (t) => {
    const server = await serve(t, { engine })
    const call = apiOf(server)
    const closings = await listClosings(server)
    const session = 'a'.repeat(64)
    const edges = [await addTunnelEdge(server, 'fra-1'), await addTunnelEdge(server, 'ams-1')] as const
    const tunnels = edges.map(() => tunnelOf(server, { session }))
    for (const [index, edge] of edges.entries())
      await edge.sync({ changed: [tunnels[index] as ReportedTunnel] })
    const id = publicIdOf(server, tunnels[0] as ReportedTunnel)

    let returned = 0
    const send = () =>
      call('DELETE', `/tunnels/${id}`).finally(() => {
        returned += 1
      })
    const closing = [send(), send()]
    for (const [index, edge] of edges.entries()) {
      let told: object[] = []
      await until('the edge is told to close it', async () => {
        told = (await edge.sync()).close
        return told.length > 0
      })
      assert.deepEqual(told, [
        {
          id: tunnels[index]?.id,
          reason: 'requested',
          message: 'The API key "first" closed this tunnel.',
          session,
        },
      ])
      assert.equal((await call('GET', `/tunnels/${id}`)).status, 200)
      assert.equal(returned, 0, 'an edge still has it')
      await edge.sync({ closed: [tunnels[index]?.id as string] })
    }
    for (const { status, json } of await Promise.all(closing))
      assert.deepEqual([status, json], [200, { id, closed: true }])
    assert.equal((await call('GET', `/tunnels/${id}`)).status, 404)
    assert.equal((await call('DELETE', `/tunnels/${id}`)).status, 404)
    const actor = { kind: 'key', id: server.key.id, name: 'first' }
    assert.deepEqual(await closings(), [{ actor, target: { kind: 'tunnel', id, name: 'my-app' } }])
  })

  test(`${engine}: closing waits for the edge that a client has left for another one`, async (t) => {
    const server = await serve(t, { engine })
    const call = apiOf(server)
    const [edge, other] = [await addTunnelEdge(server, 'fra-1'), await addTunnelEdge(server, 'ams-1')]
    const client = { session: 'a'.repeat(64), resume: 'b'.repeat(64) }
    const [before, after] = [tunnelOf(server, client), tunnelOf(server, client)]
    await edge.sync({ changed: [before] })
    assert.equal((await other.claim(after)).granted, true)
    await other.sync({ changed: [after] })
    let isClosed = false
    const closing = call('DELETE', `/tunnels/${publicIdOf(server, before)}`).finally(() => {
      isClosed = true
    })
    await until('the new edge is told', async () => (await other.sync()).close.length > 0)
    await other.sync({ closed: [after.id] })
    // Long enough for several queries of the waiting request.
    await setTimeout(1_000)
    assert.equal(isClosed, false, 'the old edge may have requests in progress')
    await edge.sync({ closed: [before.id] })
    assert.equal((await closing).status, 200)
  })

  test(`${engine}: closing does not wait for an edge that is silent for so long that it carries nothing`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'fra-1')
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    const setLeaseLeft = (ms: number) =>
      server.services.store.transaction((db) =>
        db
          .updateTable('edge_sessions')
          .set({ lease_until: Date.now() + ms })
          .execute(),
      )
    // It stops 25 seconds after its last report, and the lease lasts 30.
    await setLeaseLeft(4_500)
    const { status, json } = await apiOf(server)('DELETE', `/tunnels/${tunnel.id}`)
    assert.deepEqual([status, json], [200, { id: tunnel.id, closed: true }])
    await setLeaseLeft(30_000)
    const [instruction] = (await edge.sync({ changed: [tunnel] })).close
    assert.equal(instruction?.reason, 'requested', 'when it is back')
  })

  test(`${engine}: a client that is told by an edge is not admitted at another one`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addTunnelEdge(server, 'fra-1'), await addTunnelEdge(server, 'ams-1')]
    const session = 'a'.repeat(64)
    const tunnel = tunnelOf(server, { session })
    await edge.sync({ changed: [tunnel] })
    const id = publicIdOf(server, tunnel)
    const closing = apiOf(server)('DELETE', `/tunnels/${id}`)
    await until('it is closing', async () => (await edge.sync()).close.length > 0)
    assert.deepEqual(await other.claim(tunnelOf(server, { session })), {
      granted: false,
      reason: 'closed',
      message: 'The API key "first" closed this tunnel.',
    })
    await edge.sync({ closed: [tunnel.id] })
    assert.equal((await closing).status, 200)
  })

  test(`${engine}: in variant B a key closes nothing, and the response has the address of the dashboard`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_API_VARIANT: 'B' } })
    const call = apiOf(server)
    const closings = await listClosings(server)
    const tunnel = tunnelOf(server)
    await simulateEdge(t, server, 'fra-1', [tunnel])
    for (const id of [tunnel.id, 'tun_0000000000']) {
      const { status, json } = await call('DELETE', `/tunnels/${id}`)
      assert.deepEqual([status, json.error], [403, 'forbidden'])
      assert.ok(json.message.endsWith(`can do this in the dashboard: ${server.url}`), json.message)
    }
    assert.equal((await call('DELETE', `/tunnels/${tunnel.id}`, { key: null })).status, 401)
    assert.deepEqual(await listIds(call), [tunnel.id])
    assert.deepEqual(await closings(), [])
  })

  test(`${engine}: the personal key of a member closes only tunnels that the member has opened`, async (t) => {
    const server = await serve(t, { engine })
    const createPersonal = async (name: string, role: 'member' | 'admin') => {
      const user = await addMember(server, name, role)
      const { json } = await user.post('/workspaces/acme/keys', { label: `of ${name}`, personal: true })
      return json as { id: string; token: string }
    }
    const mia = await createPersonal('Mia', 'member')
    const adam = await createPersonal('Adam', 'admin')
    const tunnels = [mia.id, adam.id, server.key.id].map((keyId, index) =>
      tunnelOf(server, { keyId, name: `app-${index}` }),
    )
    await simulateEdge(t, server, 'fra-1', tunnels)
    const [own, ofAdam, ofWorkspace] = tunnels.map(({ id }) => `/tunnels/${id}`) as [string, string, string]
    const asMia = apiOf(server, mia.token)
    for (const path of [ofAdam, ofWorkspace]) {
      const { status, json } = await asMia('DELETE', path)
      assert.equal(status, 403)
      assert.match(json.message, /only tunnels that the member has opened\. Ask an admin or owner/)
    }
    assert.equal((await asMia('DELETE', own)).status, 200)
    assert.equal((await apiOf(server, adam.token)('DELETE', ofWorkspace)).status, 200)
    assert.deepEqual(await listIds(asMia), [tunnels[1]?.id])
  })

  test(`${engine}: no key closes a tunnel of another workspace, or after its revocation`, async (t) => {
    const server = await serve(t, { engine })
    const call = apiOf(server)
    const elsewhere = await addWorkspace(server, 'elsewhere')
    const other = await server.post('/tokens', { label: 'other' })
    await revoke(server.ctx, other.json.id)
    const edge = await addTunnelEdge(server, 'fra-1')
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    const responses = []
    for (const id of [tunnel.id, 'tun_0000000000']) {
      const { status, text, headers } = await call('DELETE', `/tunnels/${id}`, { key: elsewhere.key.token })
      responses.push([status, text, [...headers.keys()].toSorted()])
    }
    assert.deepEqual(responses[0]?.slice(0, 2), [404, '{"error":"not_found"}'])
    assert.deepEqual(responses[1], responses[0])
    for (const key of [other.json.token, edge.token, null])
      assert.equal((await call('DELETE', `/tunnels/${tunnel.id}`, { key })).status, 401)
    assert.deepEqual((await edge.sync()).close, [])
    assert.deepEqual(await listIds(call), [tunnel.id])
  })
}

test('closing counts as a change of its key, and reading does not', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_WRITES_PER_HOUR: '2' } })
  const call = apiOf(server)
  for (let count = 0; count < 2; count++)
    assert.equal((await call('DELETE', '/tunnels/tun_0000000000')).status, 404)
  const { status, json, headers } = await call('DELETE', '/tunnels/tun_0000000000')
  assert.deepEqual([status, json.error], [429, 'rate_limited'])
  assert.ok(Number(headers.get('retry-after')) > 0)
  assert.equal((await server.post('/tokens', {})).status, 429, 'a key has one limit at both APIs')
  assert.deepEqual(await listIds(call), [])
})

test('requests count towards the rate limit of the key', async (t) => {
  const call = apiOf(await serve(t, { engine: 'sqlite', env: { ADIT_RATE_LIMIT: '2' } }))
  const statuses = []
  for (const path of ['/tunnels', '/names', '/edges']) statuses.push((await call('GET', path)).status)
  assert.deepEqual(statuses, [200, 200, 429])
})
