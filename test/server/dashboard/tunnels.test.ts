// Open tunnels, edges and tunnel names in the dashboard API.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import type { SyncResult } from '../../../src/contract/edge/tunnels.ts'
import { verifyPassword } from '../../../src/lib/credentials/password-hash.ts'
import { markMoved } from '../../../src/server/store/tunnels/instructions.ts'
import { lockName, reserveName } from '../../../src/server/store/tunnels/names.ts'
import { lockWorkspace } from '../../../src/server/store/workspaces.ts'
import { addMember } from '../../support/accounts/users.ts'
import { addWorkspace, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addTunnelEdge, expireLease, type TunnelEdge, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { pluck } from '../../support/pluck.ts'
import { commitWhenBlocked } from '../../support/until.ts'
import { listen } from '../edge-api/change-stream.ts'

const TUNNELS = '/workspaces/acme/tunnels'
const NAMES = '/workspaces/acme/names'

for (const engine of engines) {
  test(`${engine}: members see open tunnels with key and edge, and the state of edges`, async (t) => {
    const server = await serve(t, { engine })
    const member = await addMember(server, 'Mia', 'member')
    assert.deepEqual((await member.get(TUNNELS)).json, { tunnels: [], isComplete: true })
    const edge = await addTunnelEdge(server, 'fra-1')
    await addTunnelEdge(server, 'new')
    const access = { basicAuth: true, allowIp: ['192.0.2.7/32'] }
    const tunnel = tunnelOf(server, {
      access: { ...access, allowIp: ['192.0.2.7'] },
      requests: 12,
      bytesIn: 3,
      bytesOut: Number.MAX_SAFE_INTEGER,
      streams: 2,
    })
    await edge.sync({ changed: [tunnel], load: { tunnels: 1, streams: 2 } })
    const { json } = await member.get(TUNNELS)
    assert.deepEqual(json.tunnels, [
      {
        id: tunnel.id,
        name: 'my-app',
        type: 'http',
        pool: false,
        url: tunnel.url,
        key: { id: server.key.id, label: 'first' },
        edges: [{ id: edge.id, name: 'fra-1' }],
        client: { address: '192.0.2.7', version: 'adit/0.1.0' },
        access,
        openedAt: '2026-11-15T10:02:11.000Z',
        requests: 12,
        bytesIn: 3,
        bytesOut: Number.MAX_SAFE_INTEGER,
        streams: 2,
        closeRequestedAt: null,
      },
    ])
    const { edges } = (await member.get('/workspaces/acme/edges')).json
    assert.deepEqual(pluck(edges, 'name', 'isConnected', 'version', 'tunnels'), [
      ['fra-1', true, 'adit/0.1.0', 1],
      ['new', false, null, 0],
    ])
    await expireLease(server, edge.id)
    assert.deepEqual((await member.get(TUNNELS)).json.tunnels, [])
    assert.equal((await member.get('/workspaces/acme/edges')).json.edges[0].isConnected, false)
  })

  test(`${engine}: an unchanged list is 304`, async (t) => {
    const server = await serve(t, { engine })
    const member = await addMember(server, 'Mia', 'member')
    const edge = await addTunnelEdge(server, 'fra-1')
    await edge.sync({ changed: [tunnelOf(server)] })
    const etag = (await member.get(TUNNELS)).headers.get('etag') ?? ''
    await edge.sync()
    const second = await member.browser.call('GET', TUNNELS, undefined, { 'if-none-match': etag })
    assert.equal(second.status, 304)
  })

  test(`${engine}: a close request survives that the edge was away and reports everything again`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const edge = await addTunnelEdge(server, 'fra-1')
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    await admin.remove(`${TUNNELS}/${tunnel.id}`)
    await expireLease(server, edge.id)
    assert.equal((await edge.sync()).resync, true)
    assert.deepEqual(reasons(await edge.sync({ changed: [tunnel] })), ['requested'])
  })

  test(`${engine}: a tunnel of another workspace is 404, like one that does not exist`, async (t) => {
    const server = await serve(t, { engine })
    await addWorkspace(server, 'elsewhere')
    const eve = await addMember(server, 'Eve', 'owner', 'elsewhere')
    const edge = await addTunnelEdge(server, 'fra-1')
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    for (const id of [tunnel.id, 'tun_0000000000', 'x'.repeat(100)]) {
      const { status, text } = await eve.remove(`/workspaces/elsewhere/tunnels/${id}`)
      assert.deepEqual([status, text], [404, '{"error":"not_found"}'])
    }
    assert.deepEqual((await eve.get('/workspaces/elsewhere/tunnels')).json.tunnels, [])
    assert.deepEqual((await edge.sync()).close, [])
  })

  test(`${engine}: a used name is listed, and stays once it is reserved`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const edge = await addTunnelEdge(server, 'fra-1')
    await edge.sync({ changed: [tunnelOf(server, { url: 'https://my-app.acme.localhost:8443' })] })
    const view = (reserved: boolean, open: number) => ({
      name: 'my-app',
      host: 'my-app.acme.localhost',
      reserved,
      open,
      url: 'https://my-app.acme.localhost:8443',
      access: { user: null, allowIp: [], hostHeader: null },
    })
    const { lastUsedAt, ...used } = (await admin.get(NAMES)).json.names[0]
    assert.deepEqual(used, view(false, 1))
    assert.ok(Math.abs(Date.parse(lastUsedAt) - Date.now()) < 60_000)
    const { lastUsedAt: _, ...reserved } = (await admin.post(NAMES, { name: 'my-app' })).json
    assert.deepEqual(reserved, view(true, 1))
    assert.equal((await admin.post(NAMES, { name: 'my-app' })).status, 200)
    assert.equal((await admin.remove(`${NAMES}/my-app`)).json.released, true)
    for (const name of ['my-app', 'unknown'])
      assert.equal((await admin.remove(`${NAMES}/${name}`)).status, 404)
    // Without rules there is nothing to remove, and nothing to keep the name for.
    assert.equal((await admin.post(`${NAMES}/my-app/access`, {})).json.reserved, false)
    assert.equal((await admin.get(NAMES)).json.names[0].reserved, false)
    const { entries } = (await admin.get('/workspaces/acme/audit')).json
    const actions = pluck(entries, 'action')
    assert.deepEqual(
      actions.filter((action: string) => action.startsWith('name.')),
      ['name.released', 'name.reserved'],
    )
  })

  test(`${engine}: a workspace reserves at most 100 names`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const names = Array.from({ length: 110 }, (_, index) => `name-${index}`)
    const statuses: number[] = []
    // As many at a time as there are connections to the database: more would wait, and may get 503.
    for (let start = 0; start < names.length; start += 10)
      statuses.push(
        ...(await Promise.all(
          names.slice(start, start + 10).map(async (name) => (await admin.post(NAMES, { name })).status),
        )),
      )
    assert.equal(statuses.filter((status) => status === 200).length, 100)
    assert.equal(statuses.filter((status) => status === 409).length, 10)
    const { json } = await admin.post(NAMES, { name: 'one-more' })
    assert.match(json.message, /100 reserved names, which is the limit/)
  })

  test(`${engine}: access rules reach claims and open tunnels, and the password is never returned`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const edge = await addTunnelEdge(server, 'fra-1')
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    const stream = await listen(t, server.url, edge.token)
    const set = (body: object) => admin.post(`${NAMES}/my-app/access`, body)
    const basicAuth = { user: 'preview', password: 'correct horse' }
    const allowIp = ['192.0.2.7', '10.0.0.1/8']
    const { status, text, json } = await set({ basicAuth, allowIp, hostHeader: 'rewrite' })
    assert.equal(status, 200, text)
    assert.deepEqual(json.access, {
      user: 'preview',
      allowIp: ['192.0.2.7/32', '10.0.0.1/8'],
      hostHeader: 'rewrite',
    })
    assert.equal(json.reserved, true)
    assert.ok(!text.includes('scrypt') && !text.includes('correct horse'))
    assert.ok(!(await admin.get(NAMES)).text.includes('scrypt'))
    await stream.until((list) => list.some(({ event }) => event === 'tunnels-changed'))

    // Repeated while the response is lost.
    const { previous } = edge.state
    await edge.sync()
    const { names } = await edge.sync({ previous })
    assert.equal(names.length, 1)
    assert.equal(names[0]?.access?.hostHeader, 'rewrite')
    const hash = names[0]?.access?.basicAuth?.hash ?? ''
    assert.equal(await verifyPassword('correct horse', hash), true)
    assert.deepEqual((await edge.sync()).names, [])
    const claimed = await edge.claim(tunnelOf(server))
    assert.deepEqual(claimed, { granted: true, access: names[0]?.access, counts: true })

    assert.equal((await admin.remove(`${NAMES}/my-app`)).status, 409)
    assert.deepEqual((await set({ basicAuth: { user: 'other' } })).json.access, {
      user: 'other',
      allowIp: [],
      hostHeader: null,
    })
    const [changed] = (await edge.sync()).names
    assert.deepEqual(changed?.access, { basicAuth: { user: 'other', hash }, allowIp: [] })
    assert.equal((await set({ hostHeader: 'app.test' })).json.access.hostHeader, 'app.test')
    const [onlyHost] = (await edge.sync()).names
    assert.deepEqual(onlyHost?.access, { basicAuth: null, allowIp: [], hostHeader: 'app.test' })
    assert.deepEqual((await set({})).json.access, { user: null, allowIp: [], hostHeader: null })
    assert.deepEqual((await edge.sync()).names, [
      { workspace: 'acme', name: 'my-app', access: null, counts: true },
    ])
    assert.equal((await admin.remove(`${NAMES}/my-app`)).status, 200)
  })

  test(`${engine}: invalid access rules are rejected`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const password = 'correct horse'
    const invalid = {
      '/body/basicAuth/user': { basicAuth: { user: 'a:b', password } },
      '/body/basicAuth/password': { basicAuth: { user: 'a', password: 'short' } },
      '/body/allowIp/0': { allowIp: ['192.0.2.0/33'] },
      '/body/hostHeader': { hostHeader: 'a\r\nb: c' },
      '/body/allowIp': { allowIp: Array(51).fill('192.0.2.1') },
    }
    for (const [path, body] of Object.entries(invalid)) {
      const { status, json } = await admin.post(`${NAMES}/my-app/access`, body)
      assert.deepEqual([status, json.details?.[0]?.path], [400, path])
    }
    const missing = await admin.post(`${NAMES}/my-app/access`, { basicAuth: { user: 'a' } })
    assert.match(missing.json.details[0].message, /no password yet/)
    assert.equal((await admin.post(`${NAMES}/my-app/access`, {})).status, 404)
    assert.equal((await admin.post(NAMES, { name: 'Not.A.Label' })).status, 400)
    assert.deepEqual((await admin.get(NAMES)).json.names, [])
  })
}

test('postgres: a tunnel whose client moves to another edge while it is closed is 404', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const admin = await addMember(server, 'Adam', 'admin')
  const edge = await addTunnelEdge(server, 'a')
  const tunnel = tunnelOf(server)
  await edge.sync({ changed: [tunnel] })
  const { status } = await commitWhenBlocked(
    server.services.store,
    async (tx) => {
      await lockName(tx, { workspace_id: server.workspace.id, name: tunnel.name })
      await markMoved(tx, [{ edge_id: edge.id, id: tunnel.id }], 1)
    },
    () => admin.remove(`${TUNNELS}/${tunnel.id}`),
  )
  assert.equal(status, 404)
  assert.deepEqual((await edge.sync()).close[0]?.reason, 'moved')
})

test('postgres: a name that gets access rules while it is released stays reserved', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const { store } = server.services
  const admin = await addMember(server, 'Adam', 'admin')
  assert.equal((await admin.post(NAMES, { name: 'my-app' })).status, 200)
  const id = { workspace_id: server.workspace.id, name: 'my-app' }
  const accessRules = JSON.stringify({ basicAuth: null, allowIp: ['192.0.2.0/24'] })
  const { status } = await commitWhenBlocked(
    store,
    async (tx) => {
      await lockWorkspace(tx, id.workspace_id)
      await reserveName(tx, { ...id, now: 1, accessRules })
    },
    () => admin.remove(`${NAMES}/my-app`),
  )
  assert.equal(status, 409)
  const [{ reserved, access }] = (await admin.get(NAMES)).json.names
  assert.deepEqual([reserved, access.allowIp], [true, ['192.0.2.0/24']])
})

test('postgres: concurrent syncs, claims, closings and changes of rules do not deadlock', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const { store } = server.services
  const admin = await addMember(server, 'Adam', 'admin')
  const edges = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
  const deadlocks = async () => {
    const { rows } = await sql<{ count: string }>`
      select deadlocks as count, pg_stat_clear_snapshot() from pg_stat_database
      where datname = current_database()`.execute(store.db)
    return Number(rows[0]?.count)
  }
  const before = await deadlocks()
  const pools = edges.map(() => Array.from({ length: 20 }, () => tunnelOf(server, { pool: true })))
  const report = async (index: number) => {
    const [edge, tunnels = []] = [edges[index] as TunnelEdge, pools[index]]
    for (let round = 1; round <= 15; round++) {
      const changed = tunnels.map((tunnel) => ({ ...tunnel, requests: round }))
      await edge.sync({ changed: round % 2 === 0 ? changed : changed.reverse() })
      await edge.claim(tunnelOf(server, { pool: true }))
    }
  }
  const govern = async (allowIp: string[]) => {
    for (let round = 0; round < 15; round++) {
      assert.equal((await admin.post(`${NAMES}/my-app/access`, { allowIp })).status, 200)
      const { status } = await admin.remove(`${TUNNELS}/${pools[0]?.[round]?.id}`)
      assert.ok(status === 200 || status === 404, String(status))
    }
  }
  await Promise.all([report(0), report(1), govern(['192.0.2.0/24']), govern(['198.51.100.0/24'])])
  assert.equal(await deadlocks(), before)
})

const reasons = ({ close }: SyncResult) => close.map(({ reason }) => reason)
