// What a stolen edge credential can do: nothing to workspaces of which its edge has verified no API key.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane } from '../../../src/edge-sdk/index.ts'
import { createSecret, hashSecret } from '../../../src/lib/credentials/secret.ts'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { rotate } from '../../../src/server/domain/keys/rotation.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { archiveAsOperator, restore } from '../../../src/server/domain/workspaces/archive.ts'
import { setQuotas } from '../../../src/server/domain/workspaces/quotas.ts'
import { createGrants } from '../../../src/server/verification/grants.ts'
import { addWorkspace, caller, operator, serve, type TestServer } from '../../support/api/server.ts'
import { counter, today } from '../../support/api/usage.ts'
import { atEnd } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { postJson, sendFrp } from '../../support/edges/frp-payloads.ts'
import { addTunnelEdge, grantOf, storedTunnels, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { until } from '../../support/until.ts'

type Stranger = Awaited<ReturnType<typeof addStranger>>

/** An edge that has verified nothing yet. */
async function addStranger(server: TestServer, name = 'stolen') {
  const edge = await createEdge(server.services, operator, name)
  const call = caller(`${server.url}/edge/v1`, edge.token)
  return { ...edge, call, post: (path: string, json: unknown) => call('POST', path, { json }) }
}

for (const engine of engines) {
  test(`${engine}: usage of a workspace is accepted from edges that have verified one of its keys`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addStranger(server)
    const report = async (workspace: string) => {
      const minute = `${today()}T00:00:00.000Z`
      const counters = [counter({ workspace, day: today(), requests: 7 })]
      return (await edge.post('/usage', { epoch: 'e', counters, tunnels: [{ workspace, minute, open: 3 }] }))
        .json
    }
    const foreign = await report('acme')
    assert.deepEqual(foreign, await report('nobody'), 'a foreign workspace looks like an unknown one')
    assert.deepEqual(
      foreign.rejected.map(({ reason }: { reason: string }) => reason),
      ['unknown_workspace', 'unknown_workspace'],
    )
    assert.deepEqual(await server.services.store.db.selectFrom('usage_days').selectAll().execute(), [])
    assert.equal((await edge.post('/keys/verify', { key: server.key.token })).json.valid, true)
    assert.equal((await report('acme')).accepted, 2)
  })

  test(`${engine}: an edge finds no names of workspaces of which it has verified no key`, async (t) => {
    const server = await serve(t, { engine })
    await (await addTunnelEdge(server, 'claiming')).claim(tunnelOf(server, { name: 'used' }))
    const edge = await addStranger(server)
    const find = async () => (await edge.post('/hosts/find', { host: 'used.acme.localhost' })).text
    assert.equal(await find(), '{"found":false}')
    await edge.post('/keys/verify', { key: server.key.token })
    assert.equal(await find(), '{"found":true,"workspace":"acme"}')
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

  test(`${engine}: all ways to verify a key let the edge report usage of its workspace, and no other`, async (t) => {
    const server = await serve(t, { engine })
    await addWorkspace(server, 'other')
    const { token } = server.key
    const ways: Record<string, (edge: Stranger, key: string) => Promise<unknown>> = {
      verify: (edge, key) => edge.post('/keys/verify', { key }),
      authorize: (edge, key) =>
        edge.call('GET', '/authorize', { key, headers: { 'x-adit-edge': edge.token } }),
      frp: (edge, key) => sendFrp(server, edge.token, 'Login', { user: 'acme', metas: { token: key } }),
      sish: (edge, key) => postJson(server, `/edge/sish/${edge.token}`, { password: key, user: 'acme' }),
    }
    for (const [name, present] of Object.entries(ways)) {
      const edge = await addStranger(server, name)
      const reports = async (workspace: string) => {
        const counters = [counter({ workspace, day: today(), requests: 1 })]
        return (await edge.post('/usage', { epoch: name, counters })).json.accepted
      }
      await present(edge, createSecret('key', server.services.random))
      assert.equal(await reports('acme'), 0, `${name}, unknown key`)
      await present(edge, token)
      assert.deepEqual([await reports('acme'), await reports('other')], [1, 0], name)
    }
  })
}
