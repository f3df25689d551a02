// Claims of many tunnels at once: each tunnel is decided by itself, in one transaction.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addMember } from '../../../support/accounts/users.ts'
import { serve } from '../../../support/api/server.ts'
import { withClient } from '../../../support/databases/client.ts'
import { engines } from '../../../support/databases/create.ts'
import { recordQueries } from '../../../support/databases/recorded-queries.ts'
import {
  addTunnelEdge,
  grantOf,
  publicIdOf,
  storedTunnels,
  tunnelOf,
} from '../../../support/edges/open-tunnels.ts'
import { pluck } from '../../../support/pluck.ts'
import { until } from '../../../support/until.ts'

const outcome = (result: { granted: boolean; reason?: string }) => result.reason ?? result.granted

for (const engine of engines) {
  test(`${engine}: each tunnel of a claim is granted or rejected by itself`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20999' } })
    const admin = await addMember(server, 'Adam', 'admin')
    const [old, next] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const resume = (digit: string) => digit.repeat(64)
    const [moving, closing] = ['moving', 'closing'].map((name, index) =>
      tunnelOf(server, { name, resume: resume(`${index}`) }),
    ) as [ReturnType<typeof tunnelOf>, ReturnType<typeof tunnelOf>]
    await old.sync({ changed: [moving, closing, tunnelOf(server, { name: 'taken' })] })
    await admin.remove(`/workspaces/acme/tunnels/${publicIdOf(server, closing)}`)
    await admin.post('/workspaces/acme/names/ruled/access', { allowIp: ['192.0.2.0/24'] })
    const cases = [
      [tunnelOf(server, { name: 'free' }), true],
      [tunnelOf(server, { name: 'taken' }), 'name_taken'],
      [tunnelOf(server, { name: 'moving', resume: resume('0') }), true],
      [tunnelOf(server, { name: 'closing', resume: resume('1') }), 'closed'],
      // The secret of a client counts for its own name only.
      [tunnelOf(server, { name: 'taken', resume: resume('0') }), 'name_taken'],
      [tunnelOf(server, { name: 'db', type: 'tcp', url: 'tcp://db.acme.localhost' }), true],
      [tunnelOf(server, { name: 'foreign', workspace: 'nobody' }), 'invalid_key'],
      [tunnelOf(server, { name: 'ruled' }), true],
    ] as const
    const results = await next.claimAll(cases.map(([tunnel]) => tunnel))
    assert.deepEqual(
      results.map(outcome),
      cases.map(([, expected]) => expected),
    )
    assert.match(String((results[5] as { port?: number }).port), /^20\d{3}$/)
    assert.deepEqual(results[7], {
      granted: true,
      access: { basicAuth: null, allowIp: ['192.0.2.0/24'] },
      counts: true,
    })
    const granted = cases.filter(([, expected]) => expected === true).map(([{ id }]) => id)
    assert.deepEqual(await storedTunnels(server, next.id), granted.toSorted())
    const { close } = await old.sync()
    assert.deepEqual(
      pluck(close, 'id', 'reason').toSorted(),
      [
        [moving.id, 'moved'],
        [closing.id, 'requested'],
      ].toSorted(),
    )
  })

  test(`${engine}: tunnels without a grant are rejected, and the others opened`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    await edge.sync()
    const tunnels = [tunnelOf(server, { name: 'one' }), tunnelOf(server, { name: 'two', keyId: 'tok_other' })]
    const body = { ...edge.claimBody(...tunnels), grants: [grantOf(edge, server.key.id)] }
    const { json } = await edge.post('/tunnels/claim', body)
    assert.deepEqual(json.results.map(outcome), [true, 'grant_required'])
    const none = await edge.post('/tunnels/claim', { ...body, grants: [] })
    assert.deepEqual(none.json.results.map(outcome), ['grant_required', 'grant_required'])
  })

  test(`${engine}: a claim with an id twice is invalid, and opens nothing`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const tunnel = tunnelOf(server)
    const body = edge.claimBody(tunnel, { ...tunnel, name: 'other' })
    const { status, json } = await edge.post('/tunnels/claim', body)
    assert.deepEqual(
      [status, json.details],
      [400, [{ path: '/body/tunnels/1/id', message: 'is that of another tunnel of this claim' }]],
    )
    assert.deepEqual(await storedTunnels(server, edge.id), [])
  })
}

test('postgres: a claim of 250 tunnels takes about as many statements as one of ten', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const [old, edge] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
  await edge.sync()
  const queries = recordQueries(t)
  const countStatements = async (prefix: string, count: number) => {
    const tunnels = Array.from({ length: count }, (_, index) =>
      tunnelOf(server, { name: `${prefix}-${index}`, resume: index.toString(16).padStart(64, '0') }),
    )
    // Half of the clients move from another edge.
    await old.sync({ changed: tunnels.slice(0, count / 2) })
    queries.length = 0
    const results = await edge.claimAll(tunnels.map((tunnel) => ({ ...tunnel, id: `${tunnel.id}x` })))
    assert.ok(results.every(({ granted }) => granted))
    return queries.filter(({ text }) => /open_tunnels|tunnel_names|edge_sessions|api_keys/.test(text)).length
  }
  const few = await countStatements('few', 10)
  assert.ok(few > 3)
  const many = await countStatements('many', 250)
  // Background tasks of the server may add a few.
  assert.ok(many < few + 5, `${few}, then ${many}`)
})

test('postgres: an edge with many claims in progress does not take the connections of others', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const [hostile, other] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
  for (const edge of [hostile, other]) await edge.sync()
  await hostile.claim(tunnelOf(server, { name: 'locked' }))
  const { database } = server.config
  assert.ok(database.engine === 'postgres')
  await withClient(database.url, async (client) => {
    await client.query('begin')
    await client.query("select 1 from tunnel_names where name = 'locked' for update")
    const waiting = Promise.all(
      Array.from({ length: 20 }, () =>
        hostile.post('/tunnels/claim', hostile.claimBody(tunnelOf(server, { name: 'locked', pool: true }))),
      ),
    )
    const isBlocked = `select 1 from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock'`
    await until('claims wait for the lock', async () => (await client.query(isBlocked)).rows.length >= 2)
    assert.equal((await other.claim(tunnelOf(server, { name: 'free' }))).granted, true)
    await client.query('rollback')
    for (const { status } of await waiting) assert.equal(status, 200)
  })
})
