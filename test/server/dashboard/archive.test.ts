// Archived workspaces: keys are rejected everywhere once the archiving is acknowledged, and work again when
// the operator restores the workspace.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane, startVerifier } from '../../../src/edge-sdk/index.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { isInvited, redeemLink } from '../../../src/server/domain/accounts/links.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { archiveAsOperator, restore } from '../../../src/server/domain/workspaces/archive.ts'
import { getWorkspace } from '../../../src/server/store/workspaces.ts'
import { allOperations, callOperation, isRole } from '../../support/accounts/dashboard-operations.ts'
import { addMember, linkFor, openBrowser, PASSWORD } from '../../support/accounts/users.ts'
import { addEdge, addNode, addWorkspace, caller, operator, serve } from '../../support/api/server.ts'
import { counter, today } from '../../support/api/usage.ts'
import { atEnd } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

const BOB = 'bob@example.com'

for (const engine of engines) {
  test(`${engine}: no node or edge accepts a key of an archived workspace, until it is restored`, async (t) => {
    const server = await serve(t, { engine })
    const other = await addWorkspace(server, 'other')
    const olga = await addMember(server, 'Olga', 'owner')
    const nodes = [server, ...(engine === 'postgres' ? [await addNode(t, server)] : [])]
    const calls = nodes.map(({ url }) => caller(`${url}/api/v1`, server.key.token))
    const edge = await addEdge(server)
    const archived: string[] = []
    const verifiers = nodes.map(({ url }) =>
      startVerifier(createControlPlane({ url, credential: edge.token }), {
        onArchived: (workspace) => archived.push(workspace),
      }),
    )
    atEnd(t, () => {
      for (const verifier of verifiers) verifier.close()
    })
    const verifyAll = (key: string) => Promise.all(verifiers.map((verifier) => verifier.verify(key)))
    const statuses = () =>
      Promise.all(
        calls.flatMap((call) => ['/workspace', '/tokens', '/usage'].map((path) => call('GET', path))),
      )
    // Twice, so that keys and responses are cached.
    for (let round = 0; round < 2; round++) {
      for (const { status } of await statuses()) assert.equal(status, 200)
      for (const { valid } of await verifyAll(server.key.token)) assert.ok(valid)
    }

    const wrong = await olga.post('/workspaces/acme/archive', { confirm: 'other' })
    assert.equal(wrong.json.details[0].message, 'must be "acme", the slug of the workspace')
    const { status, json } = await olga.post('/workspaces/acme/archive', { confirm: 'acme' })
    assert.equal(status, 200)
    assert.equal(Date.parse(json.restorableUntil) - Date.parse(json.archivedAt), 30 * DAY_MS)
    for (const { status, json } of await statuses()) {
      assert.equal(status, 401)
      assert.match(json.message, /workspace of this API key is archived/)
    }
    await until('edges are notified', () => archived.length === nodes.length)
    assert.deepEqual(new Set(archived), new Set(['acme']))
    for (const result of await verifyAll(server.key.token))
      assert.deepEqual(result, { valid: false, reason: 'archived' })
    for (const { valid } of await verifyAll(other.key.token)) assert.ok(valid)
    // What was carried before still counts.
    const counters = [counter({ day: today(), requests: 3, bytesIn: 1, bytesOut: 1, events: 1 })]
    assert.deepEqual((await edge.report({ epoch: 'e', counters, tunnels: [] })).json.rejected, [])

    await restore(server.services, operator, 'acme')
    for (const { status } of await statuses()) assert.equal(status, 200)
    await until('valid again', async () => (await verifyAll(server.key.token)).every(({ valid }) => valid))
    assert.equal((await server.call('GET', '/usage')).json.eventCount, 1)
    const { entries } = (await olga.get('/workspaces/acme/audit')).json
    const actions = pluck(entries, 'action')
    assert.deepEqual(actions.slice(0, 2), ['workspace.restored', 'workspace.archived'])
  })

  test(`${engine}: members of an archived workspace sign in, and can do nothing in it`, async (t) => {
    const now = Date.now()
    const server = await serve(t, { engine, clock: () => now })
    const olga = await addMember(server, 'Olga', 'owner')
    const invited = await olga.post('/workspaces/acme/invitations', {
      email: BOB,
      role: 'member',
    })
    await archiveAsOperator(server.services, operator, 'acme')
    for (const operation of allOperations.filter(({ access }) => isRole(access))) {
      const response = await callOperation(olga.browser, operation)
      assert.equal(response.status, 403, operation.id)
      assert.match(response.json.message, /This workspace is archived/)
    }
    const [, link] = invited.json.link.split('#')
    assert.equal((await openBrowser(server.url).post('/links/read', { link })).status, 404)
    assert.equal(await server.services.store.transaction((db) => isInvited(db, server.services, BOB)), false)
    const { ctx } = server
    await assert.rejects(createKey(ctx), /The workspace "acme" is archived\. Restore it with/)
    // As in a request that was authenticated before, and whose body arrived afterwards.
    const late = {
      ...ctx,
      actor: { kind: 'key' as const, id: server.key.id, userId: null, managesKeys: true },
    }
    await assert.rejects(createKey(late), /workspace of this API key is archived/)
    await assert.rejects(revoke(late, server.key.id), /workspace of this API key is archived/)
    await assert.rejects(archiveAsOperator(server.services, operator, 'acme'), /already archived/)
    const memberships = async () => (await olga.get('/session')).json.workspaces
    assert.equal((await memberships())[0].archive.archivedAt, new Date(now).toISOString())
    const at = (time: number) => ({ ...server.services, clock: () => time })
    await assert.rejects(restore(at(now + 30 * DAY_MS + 1), operator, 'acme'), /could be restored until/)
    await restore(at(now + 30 * DAY_MS), operator, 'acme')
    assert.equal((await memberships())[0].archive, null)
    await assert.rejects(restore(server.services, operator, 'acme'), /is not archived/)
  })
}

for (const engine of engines) {
  test(`${engine}: an invitation is not accepted while its workspace is being archived`, async (t) => {
    const server = await serve(t, { engine })
    const { services } = server
    const link = await linkFor(server, BOB, 'member')
    const input = { link, name: 'Bob', password: PASSWORD, ipAddress: '192.0.2.1' }
    const archiveMeanwhile = async () => {
      await archiveAsOperator(services, operator, 'acme')
      return 'hash'
    }
    await assert.rejects(redeemLink(services, input, undefined, archiveMeanwhile), /link is invalid/)
    const { db } = services.store
    assert.deepEqual(await db.selectFrom('members').selectAll().execute(), [])
    assert.deepEqual(await db.selectFrom('users').selectAll().execute(), [], 'rolled back')
    await restore(services, operator, 'acme')
    assert.deepEqual(await redeemLink(services, input, undefined, async () => 'hash'), {
      email: BOB,
      password: PASSWORD,
    })
  })

  test(`${engine}: of concurrent archivings one succeeds, and its 30 days count`, async (t) => {
    const server = await serve(t, { engine })
    const results = await Promise.allSettled(
      [1_000, 2_000].map((ms) => {
        const at = Date.now() + ms
        return archiveAsOperator({ ...server.services, clock: () => at }, operator, 'acme')
      }),
    )
    const [succeeded, ...others] = results.flatMap((result) =>
      result.status === 'fulfilled' ? result.value : [],
    )
    assert.equal(others.length, 0)
    const { archived_at } = await getWorkspace(server.services.store.db, server.workspace.id)
    assert.equal(new Date(archived_at as number).toISOString(), succeeded?.archivedAt)
  })
}

test('the tunnels of an archived workspace are closed, and their clients exit with the reason', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { token } = await addEdge(server)
  const edge = await startTunnelEdge(t, { env: { ADIT_URL: server.url, ADIT_EDGE_KEY: token } })
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key: server.key.token, port: local.port, name: 'app' })
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  await archiveAsOperator(server.services, operator, 'acme')
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 4)
  assert.match(stderr, /closed the tunnel: the workspace of this API key is archived/i)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
})
