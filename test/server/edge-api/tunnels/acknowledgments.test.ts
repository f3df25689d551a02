// Revocations wait for edges that may carry traffic of the key: until they acknowledge, or their lease ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { createKey } from '../../../../src/server/domain/keys/lifecycle.ts'
import { archiveAsOperator } from '../../../../src/server/domain/workspaces/archive.ts'
import { operator, serve, type TestServer } from '../../../support/api/server.ts'
import type { Test } from '../../../support/cleanup.ts'
import { type Engine, engines } from '../../../support/databases/create.ts'
import { setRows } from '../../../support/databases/rows.ts'
import { addTunnelEdge, type TunnelEdge, tunnelOf } from '../../../support/edges/open-tunnels.ts'
import { until } from '../../../support/until.ts'

/** Longer than a revocation takes that waits for no edge, on a busy machine. */
const NO_WAIT_MS = 1_000

async function setUp(t: Test, engine: Engine, env = {}) {
  const server = await serve(t, { engine, env })
  const edge = await addTunnelEdge(server, 'edge-1')
  const key = await createKey(server.ctx)
  await edge.sync({ applied: '0' })
  return { server, edge, key }
}

/** The position of the latest change, as every sync gets it. */
const head = async (edge: TunnelEdge) => (await edge.sync({ applied: '0' })).lease?.after as string

/** Revokes a key. `isDone` tells whether the response has arrived. */
function revoke({ call }: TestServer, id: string) {
  let isDone = false
  const startedAt = performance.now()
  const response = call('DELETE', `/tokens/${id}`).then(({ status }) => {
    isDone = true
    return { status, tookMs: performance.now() - startedAt }
  })
  return { response, isDone: () => isDone }
}

for (const engine of engines) {
  test(`${engine}: a revocation waits until the edge with an open tunnel of the key acknowledges it`, async (t) => {
    const { server, edge, key } = await setUp(t, engine)
    const tunnel = tunnelOf(server, { keyId: key.id })
    assert.ok((await edge.claim(tunnel)).granted)
    const { response, isDone } = revoke(server, key.id)
    await sleep(NO_WAIT_MS)
    assert.equal(isDone(), false)
    // A later sync that has closed the tunnel, but says nothing of the change, is no acknowledgment.
    await edge.sync({ applied: '0', closed: [tunnel.id] })
    await sleep(NO_WAIT_MS / 2)
    assert.equal(isDone(), false)
    await edge.sync({ applied: await head(edge) })
    assert.equal((await response).status, 200)
  })

  test(`${engine}: a revocation does not wait for edges without the key, or that acknowledge nothing`, async (t) => {
    const { server, edge, key } = await setUp(t, engine)
    assert.ok((await edge.claim(tunnelOf(server))).granted)
    assert.ok((await revoke(server, key.id).response).tookMs < NO_WAIT_MS)
    const silent = await addTunnelEdge(server, 'edge-2')
    const other = await createKey(server.ctx)
    await silent.sync()
    assert.ok((await silent.claim(tunnelOf(server, { keyId: other.id, name: 'other' }))).granted)
    assert.ok((await revoke(server, other.id).response).tookMs < NO_WAIT_MS)
  })

  test(`${engine}: an edge that stops without a word is waited for until its lease has ended, also if another process replaces it`, async (t) => {
    const { server, edge, key } = await setUp(t, engine)
    assert.ok((await edge.claim(tunnelOf(server, { keyId: key.id }))).granted)
    edge.restart()
    await edge.sync({ applied: await head(edge) })
    const { response, isDone } = revoke(server, key.id)
    await sleep(NO_WAIT_MS)
    await edge.sync({ applied: await head(edge) })
    await sleep(NO_WAIT_MS / 2)
    assert.equal(isDone(), false)
    await setRows(server.services, 'edge_sessions', { previous_lease_until: 0 })
    assert.equal((await response).status, 200)
  })

  test(`${engine}: a retry of a revocation waits for the edge, too`, async (t) => {
    const { server, edge, key } = await setUp(t, engine)
    assert.ok((await edge.claim(tunnelOf(server, { keyId: key.id }))).granted)
    const first = revoke(server, key.id)
    const retry = revoke(server, key.id)
    await sleep(NO_WAIT_MS)
    assert.deepEqual([first.isDone(), retry.isDone()], [false, false])
    await edge.sync({ applied: await head(edge) })
    const responses = await Promise.all([first.response, retry.response])
    assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 404])
  })

  test(`${engine}: archiving a workspace waits for edges with tunnels of any of its keys`, async (t) => {
    const { server, edge } = await setUp(t, engine)
    assert.ok((await edge.claim(tunnelOf(server))).granted)
    let isDone = false
    const archived = archiveAsOperator(server.services, operator, server.workspace.slug).then(() => {
      isDone = true
    })
    await sleep(NO_WAIT_MS)
    assert.equal(isDone, false)
    await edge.sync({ applied: await head(edge) })
    await archived
  })

  test(`${engine}: with ADIT_EDGE_ACKNOWLEDGMENTS=off, revocations do not wait and edges have no lease`, async (t) => {
    const { server, edge, key } = await setUp(t, engine, { ADIT_EDGE_ACKNOWLEDGMENTS: 'off' })
    assert.ok((await edge.claim(tunnelOf(server, { keyId: key.id }))).granted)
    assert.ok((await revoke(server, key.id).response).tookMs < NO_WAIT_MS)
    assert.equal((await edge.sync({ applied: '0' })).lease?.seconds, null)
  })
}

test('postgres: a claim that read the key before its revocation is found by the revocation', async (t) => {
  const { server, edge, key } = await setUp(t, 'postgres')
  const tunnel = tunnelOf(server, { keyId: key.id })
  assert.ok((await edge.claim(tunnel)).granted)
  await edge.sync({ applied: '0', closed: [tunnel.id] })
  await server.services.store.transaction((tx) => tx.deleteFrom('recent_keys').execute())
  const locked = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const blocking = server.services.store.transaction(async (tx) => {
    await tx.updateTable('tunnel_names').set({ created_at: 1 }).execute()
    locked.resolve()
    await release.promise
  })
  await locked.promise
  const claimed = edge.claim(tunnelOf(server, { keyId: key.id }))
  await until('the claim waits for the name', () => isWaiting(server, 'tunnel_names'))
  const { response, isDone } = revoke(server, key.id)
  await until('the revocation waits for the claim', () => isWaiting(server, 'api_keys'))
  release.resolve()
  await blocking
  assert.ok((await claimed).granted)
  await sleep(NO_WAIT_MS)
  assert.equal(isDone(), false)
  await edge.sync({ applied: await head(edge) })
  assert.equal((await response).status, 200)
})

async function isWaiting({ services }: TestServer, table: string): Promise<boolean> {
  const { rows } = await sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${table}%`}
      and pid <> pg_backend_pid()`.execute(services.store.db)
  return rows.length > 0
}
