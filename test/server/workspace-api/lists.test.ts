// Reading open tunnels, tunnel names and edges with an API key.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createGroup } from '../../../src/server/domain/cluster/groups.ts'
import { setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { addMember } from '../../support/accounts/users.ts'
import {
  addWorkspace,
  type Call,
  caller,
  operator,
  serve,
  type TestServer,
} from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addTunnelEdge, publicIdOf, tunnelOf } from '../../support/edges/open-tunnels.ts'

const apiOf = ({ url, key }: Pick<TestServer, 'url' | 'key'>) => caller(`${url}/workspace/v1`, key.token)

/** The items of all pages; each has at most `limit`. */
async function readAll(call: Call, list: string, limit: number, query = '') {
  const items: { name: string }[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const after: string = cursor && `&cursor=${encodeURIComponent(cursor)}`
    const { status, json, text } = await call('GET', `/${list}?limit=${limit}${after}${query}`)
    assert.equal(status, 200, text)
    assert.ok(json[list].length <= limit)
    items.push(...json[list])
    cursor = json.next
  }
  return items.map(({ name }) => name)
}

for (const engine of engines) {
  test(`${engine}: a key reads the open tunnels of its workspace as members see them`, async (t) => {
    const server = await serve(t, { engine })
    const call = apiOf(server)
    assert.deepEqual((await call('GET', '/tunnels')).json, { tunnels: [], next: null })
    const edge = await addTunnelEdge(server, 'fra-1')
    const session = 'a'.repeat(64)
    const access = { basicAuth: true, allowIp: ['192.0.2.0/24'] }
    const tunnel = tunnelOf(server, { session, access, requests: 12, bytesOut: Number.MAX_SAFE_INTEGER })
    await edge.sync({ changed: [tunnel] })
    const other = await addTunnelEdge(server, 'ams-1')
    await other.sync({ changed: [tunnelOf(server, { session, requests: 3 })] })
    const { tunnels, next } = (await call('GET', '/tunnels')).json
    assert.equal(next, null)
    const [listed] = tunnels
    assert.deepEqual(tunnels, [
      {
        id: publicIdOf(server, tunnel),
        name: 'my-app',
        type: 'http',
        pool: false,
        url: tunnel.url,
        key: { id: server.key.id, label: 'first' },
        edges: listed.edges,
        client: { address: '192.0.2.7', version: 'adit/0.1.0' },
        access,
        openedAt: '2026-11-15T10:02:11.000Z',
        requests: 15,
        bytesIn: 0,
        bytesOut: Number.MAX_SAFE_INTEGER,
        streams: 0,
        closeRequestedAt: null,
      },
    ])
    assert.deepEqual(
      listed.edges.map(({ name }: { name: string }) => name).toSorted(),
      ['ams-1', 'fra-1'],
      'one tunnel at two edges',
    )
    assert.deepEqual((await call('GET', `/tunnels/${listed.id}`)).json, listed)
    const member = await addMember(server, 'Mia', 'member')
    assert.deepEqual((await member.get('/workspaces/acme/tunnels')).json.tunnels, tunnels)
    await edge.sync({ closed: [tunnel.id] })
    await other.restart()
    await other.sync()
    assert.equal((await call('GET', `/tunnels/${listed.id}`)).status, 404, 'closed')
  })

  test(`${engine}: pages of tunnels follow each other without gaps, also while tunnels are closed`, async (t) => {
    const server = await serve(t, { engine })
    const call = apiOf(server)
    const edge = await addTunnelEdge(server, 'fra-1')
    const names = Array.from({ length: 7 }, (_, index) => `app-${index}`)
    const pool = Array.from({ length: 3 }, () => tunnelOf(server, { name: 'pooled', pool: true }))
    const tunnels = [...names.map((name) => tunnelOf(server, { name })), ...pool]
    await edge.sync({ changed: tunnels })
    const sorted = [...names, 'pooled', 'pooled', 'pooled']
    for (const limit of [1, 2, 3, 50]) assert.deepEqual(await readAll(call, 'tunnels', limit), sorted)
    assert.equal((await readAll(call, 'tunnels', 2, '&name=pooled')).length, 3)
    assert.deepEqual(await readAll(call, 'tunnels', 2, '&name=app-4'), ['app-4'])
    assert.deepEqual(await readAll(call, 'tunnels', 2, '&name=none'), [])

    const { next } = (await call('GET', '/tunnels?limit=3')).json
    const closed = tunnels.slice(0, 3).map(({ id }) => id)
    await edge.sync({ closed })
    const rest = (await call('GET', `/tunnels?cursor=${next}`)).json.tunnels
    assert.deepEqual(
      rest.map(({ name }: { name: string }) => name),
      sorted.slice(3),
    )
  })

  test(`${engine}: a key reads tunnel names with their reservations and rules, in pages`, async (t) => {
    const server = await serve(t, { engine })
    const call = apiOf(server)
    const admin = await addMember(server, 'Adam', 'admin')
    for (const name of ['c', 'a', 'b']) await admin.post('/workspaces/acme/names', { name })
    const basicAuth = { user: 'preview', password: 'correct horse' }
    await admin.post('/workspaces/acme/names/b/access', { basicAuth, allowIp: ['192.0.2.7'] })
    const edge = await addTunnelEdge(server, 'fra-1')
    await edge.sync({ changed: [tunnelOf(server)] })
    for (const limit of [1, 2, 50])
      assert.deepEqual(await readAll(call, 'names', limit), ['a', 'b', 'c', 'my-app'])
    const { json, text } = await call('GET', '/names')
    assert.ok(!text.includes('scrypt') && !text.includes('correct horse'))
    assert.deepEqual(json.names[1], {
      name: 'b',
      host: 'b.acme.localhost',
      lastUsedAt: null,
      reserved: true,
      open: 0,
      url: null,
      access: { user: 'preview', allowIp: ['192.0.2.7/32'], hostHeader: null },
    })
    const { lastUsedAt, ...used } = json.names[3]
    assert.ok(Math.abs(Date.parse(lastUsedAt) - Date.now()) < 60_000)
    assert.deepEqual([used.reserved, used.open, used.url], [false, 1, 'https://my-app.acme.localhost'])
  })

  test(`${engine}: a key reads the edges of its group with their public URLs, in pages`, async (t) => {
    const server = await serve(t, { engine })
    const call = apiOf(server)
    await createGroup(server.services, operator, 'eu')
    await addTunnelEdge(server, 'elsewhere', server.url, 'eu')
    await addTunnelEdge(server, 'with a space & more')
    const edge = await addTunnelEdge(server, 'fra-1')
    await setUrl(server.services, operator, edge.id, 'https://fra-1.example.com')
    await edge.sync({ changed: [tunnelOf(server)] })
    for (const limit of [1, 50])
      assert.deepEqual(await readAll(call, 'edges', limit), ['fra-1', 'with a space & more'])
    const [first, second] = (await call('GET', '/edges')).json.edges
    const { lastSyncAt, ...shown } = first
    assert.ok(Math.abs(Date.parse(lastSyncAt) - Date.now()) < 60_000)
    assert.deepEqual(shown, {
      id: edge.id,
      name: 'fra-1',
      url: 'https://fra-1.example.com',
      version: 'adit/0.1.0',
      startedAt: '2026-11-15T08:00:00.000Z',
      isConnected: true,
      tunnels: 1,
    })
    assert.deepEqual([second.url, second.isConnected, second.lastSyncAt], [null, false, null])
  })

  test(`${engine}: what belongs to another workspace is not listed, and its tunnel looks like none`, async (t) => {
    const server = await serve(t, { engine })
    const elsewhere = await addWorkspace(server, 'elsewhere')
    const call = caller(`${server.url}/workspace/v1`, elsewhere.key.token)
    const edge = await addTunnelEdge(server, 'fra-1')
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    for (const list of ['tunnels', 'names']) assert.deepEqual(await readAll(call, list, 50), [])
    assert.equal((await call('GET', '/edges')).json.edges[0].tunnels, 0)
    const responses = []
    for (const id of [tunnel.id, 'tun_0000000000', 'x'.repeat(100)]) {
      const { status, text, headers } = await call('GET', `/tunnels/${id}`)
      responses.push([status, text, [...headers.keys()].toSorted()])
    }
    assert.deepEqual(responses[0]?.slice(0, 2), [404, '{"error":"not_found"}'])
    for (const response of responses) assert.deepEqual(response, responses[0])
  })
}

test('limits and cursors that no page has named are rejected', async (t) => {
  const call = apiOf(await serve(t, { engine: 'sqlite' }))
  for (const [path, parameter] of [
    ['/tunnels?limit=0', 'limit'],
    ['/tunnels?limit=201', 'limit'],
    ['/tunnels?cursor=my-app', 'cursor'],
    [`/tunnels?cursor=${'a'.repeat(64)}.tun_0000000000`, 'cursor'],
    ['/tunnels?name=Not.A.Label', 'name'],
    ['/names?limit=1e2', 'limit'],
    ['/names?cursor=a.b', 'cursor'],
    [`/edges?cursor=${'x'.repeat(81)}`, 'cursor'],
    ['/edges?cursor=a%00b', 'cursor'],
  ] as const) {
    const { status, json } = await call('GET', path)
    assert.deepEqual([status, json.details?.[0]?.path], [400, `/query/${parameter}`], path)
  }
  assert.equal((await call('GET', '/tunnels/%00')).status, 400)
})
