// What a stolen edge credential can do: nothing to workspaces of other groups, and no tunnels without keys.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane } from '../../../src/edge-sdk/index.ts'
import { createSecret, hashSecret } from '../../../src/lib/credentials/secret.ts'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { createGroup, setWorkspaceGroup } from '../../../src/server/domain/cluster/groups.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { rotate } from '../../../src/server/domain/keys/rotation.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { sumEdgeUsage } from '../../../src/server/domain/usage/reset-edge.ts'
import { archiveAsOperator, restore } from '../../../src/server/domain/workspaces/archive.ts'
import { setQuotas } from '../../../src/server/domain/workspaces/quotas.ts'
import { createGrants } from '../../../src/server/verification/grants.ts'
import {
  caller,
  operator,
  readResponse,
  serve,
  type TestResponse,
  type TestServer,
} from '../../support/api/server.ts'
import { counter, today } from '../../support/api/usage.ts'
import { atEnd } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { postJson, sendFrp } from '../../support/edges/frp-payloads.ts'
import { addTunnelEdge, grantOf, storedTunnels, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

type Stranger = Awaited<ReturnType<typeof addStranger>>

/** An edge that has verified nothing yet. */
async function addStranger(server: TestServer, name = 'stolen', group = 'default') {
  const edge = await createEdge(server.services, operator, name, { group })
  const call = caller(`${server.url}/edge/v1`, edge.token)
  return { ...edge, call, post: (path: string, json: unknown) => call('POST', path, { json }) }
}

for (const engine of engines) {
  test(`${engine}: usage of a workspace is accepted from edges of its group only`, async (t) => {
    const server = await serve(t, { engine })
    await createGroup(server.services, operator, 'eu')
    const edge = await addStranger(server, 'stolen', 'eu')
    const report = async (workspace: string) => {
      const minute = `${today()}T00:00:00.000Z`
      const counters = [counter({ workspace, day: today(), requests: 7 })]
      return (await edge.post('/usage', { epoch: 'e', counters, tunnels: [{ workspace, minute, open: 3 }] }))
        .json
    }
    const foreign = await report('acme')
    assert.deepEqual(foreign, await report('nobody'), 'a foreign workspace looks like an unknown one')
    assert.deepEqual(pluck(foreign.rejected, 'reason'), ['unknown_workspace', 'unknown_workspace'])
    assert.deepEqual(await server.services.store.db.selectFrom('usage_days').selectAll().execute(), [])
    await setWorkspaceGroup(server.services, operator, 'acme', 'eu')
    assert.equal((await report('acme')).accepted, 2)
    assert.equal((await sumEdgeUsage(server.services, edge.id)).requests, 7n, 'it can be found and reset')
    await setWorkspaceGroup(server.services, operator, 'acme', 'default')
    assert.deepEqual(await report('acme'), foreign)
  })

  test(`${engine}: a name is claimed or reported with a grant for its key and edge that has not expired`, async (t) => {
    const server = await serve(t, { engine })
    const { id: keyId, token } = server.key
    const [edge, other] = [await addTunnelEdge(server, 'stolen'), await addTunnelEdge(server, 'other')]
    const another = await createKey(server.ctx)
    const expired = createGrants(SECRET).issue(edge.id, keyId, Date.now() - 11 * MINUTE_MS)
    const [, expiry, signature] = grantOf(edge, keyId).split('.')
    const rejected = {
      'of another edge': grantOf(other, keyId),
      'of another key': grantOf(edge, another.id),
      expired,
      'with another expiry': expired.replace(/[.][^.]+[.]/, `.${expiry}.`),
      'of another key, renamed': grantOf(edge, another.id).replace(another.id, keyId),
      'of another server': createGrants(`other ${SECRET}`).issue(edge.id, keyId, Date.now()),
      forged: `${keyId}.${expiry}.${'A'.repeat(signature?.length ?? 0)}`,
    }
    for (const [what, grant] of Object.entries(rejected)) {
      const tunnel = tunnelOf(server)
      const claim = await edge.claim(tunnel, { grants: [grant] })
      assert.equal(!claim.granted && claim.reason, 'grant_required', what)
      const { grantRequired, close } = await edge.sync({ changed: [tunnel], grants: [grant] })
      assert.deepEqual([grantRequired, close], [[tunnel.id], []], what)
    }
    assert.deepEqual(await storedTunnels(server, edge.id), [])
    const { grants, ...without } = edge.syncBody({ changed: [tunnelOf(server)] })
    assert.equal((await edge.post('/tunnels/sync', without)).json.grantRequired.length, 1)
    Object.assign(edge.state, { sequence: without.sequence, previous: without.sequence })
    const { json } = await edge.post('/keys/verify', { key: token, grant: true })
    const tunnel = tunnelOf(server)
    assert.equal((await edge.claim(tunnel, { grants: [json.grant] })).granted, true)
    // What is listed needs no grant any more, and a grant does not outlive its key.
    const { grantRequired } = await edge.sync({ changed: [{ ...tunnel, requests: 1 }], grants: [] })
    assert.deepEqual(grantRequired, [])
    await revoke(server.ctx, keyId)
    const late = await edge.claim(tunnelOf(server, { name: 'late' }), { grants: [json.grant] })
    assert.equal(!late.granted && late.reason, 'invalid_key')
  })

  test(`${engine}: the stream of changes names no key and no workspace`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addStranger(server)
    const gone = new AbortController()
    atEnd(t, () => gone.abort())
    const controlPlane = createControlPlane({ url: server.url, credential: edge.token })
    const events: { event?: string | undefined; data?: string | undefined }[] = []
    const stream = await controlPlane.keyChanges(undefined, gone.signal)
    void (async () => {
      for await (const event of stream) events.push(event)
    })().catch(() => {})
    await until('it is up to date', () => events.length > 0)
    const { ctx, services, workspace } = server
    const keys = [await createKey(ctx), await createKey(ctx)] as const
    await revoke(ctx, keys[0].id)
    await rotate(ctx, keys[1].id, '1h')
    await setQuotas(services, operator, 'acme', { bytes: 1_000 })
    await archiveAsOperator(services, operator, 'acme')
    await restore(services, operator, 'acme')
    const kinds = ['revoked', 'expiry-changed', 'quota-changed', 'workspace-archived', 'workspace-restored']
    await until('all have arrived', () => kinds.every((kind) => events.some(({ event }) => event === kind)))
    const text = JSON.stringify(events)
    for (const secret of ['acme', 'Acme', workspace.id, ...keys.map(({ id }) => id)])
      assert.ok(!text.includes(secret), `the stream has ${secret}`)
    for (const { token } of keys) assert.ok(text.includes(hashSecret(token)), 'matches a key that one has')
    const { json } = await edge.post('/keys/verify', { key: server.key.token })
    assert.ok(text.includes(json.workspace.topic), 'matches a workspace that one has verified')
  })

  test(`${engine}: to an edge, keys of workspaces of another group do not exist, however it verifies them`, async (t) => {
    const server = await serve(t, { engine })
    await createGroup(server.services, operator, 'eu')
    const own = await addStranger(server, 'own')
    const foreign = await addStranger(server, 'foreign', 'eu')
    const missing = createSecret('key', server.services.random)
    const ways: Record<string, (edge: Stranger, key: string) => Promise<TestResponse | Response>> = {
      verify: (edge, key) => edge.post('/keys/verify', { key }),
      'verify with a grant': (edge, key) => edge.post('/keys/verify', { key, grant: true }),
      authorize: (edge, key) =>
        edge.call('GET', '/authorize', { key, headers: { 'x-adit-edge': edge.token } }),
      frp: (edge, key) => sendFrp(server, edge.token, 'Login', { user: 'acme', metas: { token: key } }),
      sish: (edge, key) => postJson(server, `/edge/sish/${edge.token}`, { password: key, user: 'acme' }),
    }
    for (const [name, present] of Object.entries(ways)) {
      const respond = async (edge: Stranger, key: string) => {
        const response = await present(edge, key)
        const { text } = response instanceof Response ? await readResponse(response) : response
        return `${response.status} ${text}`
      }
      const unknown = await respond(own, missing)
      // The first verification of the edge of the group caches the key.
      for (const _ of [1, 2]) assert.notEqual(await respond(own, server.key.token), unknown, name)
      for (const _ of [1, 2]) assert.equal(await respond(foreign, server.key.token), unknown, name)
    }
    const stored = await server.services.store.db.selectFrom('edge_workspaces').select('edge_id').execute()
    assert.deepEqual(pluck(stored, 'edge_id'), [own.id])
  })

  test(`${engine}: an edge of another group finds no host and opens no tunnel of a workspace`, async (t) => {
    const server = await serve(t, { engine })
    await createGroup(server.services, operator, 'eu')
    const own = await addTunnelEdge(server, 'own')
    const foreign = await addTunnelEdge(server, 'foreign', server.url, 'eu')
    const open = tunnelOf(server, { name: 'used' })
    assert.equal((await own.claim(open)).granted, true)
    const find = async (edge: Pick<Stranger, 'post'>, host: string) =>
      (await edge.post('/hosts/find', { host })).text
    for (const host of ['acme.localhost', 'used.acme.localhost']) {
      assert.match(await find(own, host), /"found":true/)
      assert.equal(await find(foreign, host), '{"found":false}')
    }
    // Even with a grant: the workspace may have changed its group since the edge got it.
    const claimed = await foreign.claim(tunnelOf(server, { name: 'other' }))
    const missing = await own.claim(tunnelOf(server, { keyId: 'tok_missing' }))
    assert.deepEqual(claimed, missing)
    const { close } = await foreign.sync({ changed: [tunnelOf(server, { name: 'other' })] })
    assert.equal(close[0]?.reason, 'invalid_key')
    assert.deepEqual(await storedTunnels(server, foreign.id), [])
    await assert.rejects(setWorkspaceGroup(server.services, operator, 'acme', 'eu'), /has open tunnels/)
    await own.sync()
    await own.sync({ closed: [open.id] })
    await setWorkspaceGroup(server.services, operator, 'acme', 'eu')
    assert.equal((await foreign.claim(tunnelOf(server))).granted, true)
    assert.equal((await own.claim(tunnelOf(server))).granted, false)
  })
}
