// Tunnels that the control plane knows: names claimed by real edges, closed from the dashboard, and outages.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { addEdge } from '../../support/api/server.ts'
import { createFolder, engines } from '../../support/databases/create.ts'
import { expireLease } from '../../support/edges/open-tunnels.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { attempt, startTwoEdges } from './two-edges.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const newResume = () => randomBytes(24).toString('base64url')

for (const engine of engines)
  test(`${engine}: clients at two edges race for names, and each name has one holder`, async (t) => {
    const { edges, key, listed } = await startTwoEdges(t, engine)
    const names = Array.from({ length: 8 }, (_, index) => `race-${index}`)
    const results = await Promise.all(
      names.flatMap((name) => [...edges, ...edges, ...edges].map((edge) => attempt(edge, key, { name }))),
    )
    assert.equal(results.filter((reason) => reason === undefined).length, names.length)
    for (const reason of results) if (reason !== undefined) assert.match(reason, /Use another name/)
    await until('the list has the holders only', async () => (await listed()).length === names.length)
    assert.deepEqual(
      (await listed()).map((line) => line.split(' ')[0]),
      names,
    )
  })

test('open tunnels are listed with their client, key, edge and traffic, and disappear when they are closed', async (t) => {
  const { server, edges, key, list } = await startTwoEdges(t)
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, {
    ...{ edge: edges[1], key, port: local.port, name: 'app' },
    flags: ['--allow-ip', '192.0.2.7'],
    env: { ADIT_TUNNEL_BASIC_AUTH: 'ann:correct horse' },
  })
  const headers = {
    'x-forwarded-for': '192.0.2.7',
    authorization: `Basic ${Buffer.from('ann:correct horse').toString('base64')}`,
  }
  assert.equal((await fetchHost(edges[1], tunnel.host, { path: '/bytes/5000', headers })).status, 200)
  await until('traffic is reported', async () => (await list())[0]?.requests === 1, 10_000)
  const [{ id, bytesOut, ...listed } = assert.fail()] = await list()
  assert.match(id, /^tun_/)
  assert.ok(bytesOut > 5_000)
  assert.partialDeepStrictEqual(listed, {
    name: 'app',
    url: tunnel.url,
    edges: [{ name: 'two' }],
    key: { id: server.key.id, label: 'first' },
    client: { address: '127.0.0.1' },
    access: { basicAuth: true, allowIp: ['192.0.2.7/32'] },
  })
  assert.match(listed.client.version ?? '', /^adit \d/)
  tunnel.child.kill('SIGTERM')
  await until('it is gone', async () => (await list()).length === 0)
})

test('a client that missed the reason of the close is rejected with it when it reconnects', async (t) => {
  const { admin, edges, key, list } = await startTwoEdges(t)
  const resume = newResume()
  await openRawTunnel(edges[0], key, { name: 'app', resume })
  await until('listed', async () => (await list()).length === 1)
  await admin.remove(`/workspaces/acme/tunnels/${(await list())[0]?.id}`)
  await until('gone', async () => (await list()).length === 0)
  assert.match((await attempt(edges[0], key, { name: 'app', resume })) ?? '', /Ann/)
  assert.equal(await attempt(edges[0], key, { name: 'app', resume: newResume() }), undefined)
})

test('a tunnel that is closed while its client reconnects to a cut-off edge is closed there', async (t) => {
  const { admin, edges, key, list } = await startTwoEdges(t)
  const [edge] = edges
  const request = { name: 'app', resume: newResume() }
  await openRawTunnel(edge, key, request)
  await until('listed', async () => (await list()).length === 1)
  edge.relay.cut()
  assert.equal((await admin.remove(`/workspaces/acme/tunnels/${(await list())[0]?.id}`)).status, 200)
  const reconnected = await openRawTunnel(edge, key, request)
  let events = ''
  reconnected.events.on('data', (chunk) => (events += chunk))
  edge.relay.mend()
  await until('closed', () => reconnected.session.isClosed)
  assert.match(events, /"event":"close","reason":"requested","message":"Ann closed/)
  assert.match((await attempt(edge, key, request)) ?? '', /^Ann closed/)
  await until('not listed', async () => (await list()).length === 0)
})

test('a client that moves to another edge before the first one closes its tunnel is rejected there too', async (t) => {
  const { admin, edges, key, list } = await startTwoEdges(t)
  const resume = newResume()
  await openRawTunnel(edges[0], key, { name: 'app', resume })
  await until('listed', async () => (await list()).length === 1)
  edges[0].relay.cut()
  await admin.remove(`/workspaces/acme/tunnels/${(await list())[0]?.id}`)
  assert.match((await attempt(edges[1], key, { name: 'app', resume })) ?? '', /^Ann closed this tunnel/)
})

test('a client of an edge that was killed opens its tunnel at another edge at once, and others cannot', async (t) => {
  const { edges, key, listed } = await startTwoEdges(t)
  const request = { name: 'app', resume: newResume() }
  await openRawTunnel(edges[0], key, request)
  edges[0].child.kill('SIGKILL')
  await edges[0].ended
  assert.match((await attempt(edges[1], key, { name: 'app', resume: newResume() })) ?? '', /in use/)
  assert.equal(await attempt(edges[1], key, request), undefined)
  assert.deepEqual(await listed(), ['app at two'])
})

test('a client that moves to another edge is closed at the first one, without being told to stop', async (t) => {
  const { edges, key, listed } = await startTwoEdges(t)
  const request = { name: 'app', resume: newResume() }
  const first = await openRawTunnel(edges[0], key, request)
  let events = ''
  first.events.on('data', (chunk) => (events += chunk))
  await openRawTunnel(edges[1], key, request)
  await until('closed', () => first.session.isClosed)
  assert.equal(events, '')
  assert.deepEqual(await listed(), ['app at two'])
  // It may come back.
  assert.equal(await attempt(edges[0], key, request), undefined)
})

test('an edge that stops releases its names at once, while requests are completed', async (t) => {
  const { edges, key, listed } = await startTwoEdges(t)
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge: edges[0], key, port: local.port, name: 'app' })
  const slow = fetchHost(edges[0], tunnel.host, { path: '/drip/200' })
  await until('in progress', () => local.requests.length > 0)
  edges[0].child.kill('SIGTERM')
  await until('free', async () => (await listed()).length === 0)
  assert.equal(await attempt(edges[1], key, { name: 'app' }), undefined)
  assert.equal((await slow).body.length, 200 * 10_000)
})

test('a key that is revoked while its name is claimed leaves no tunnel', async (t) => {
  const { server, edges, listed } = await startTwoEdges(t)
  const [edge] = edges
  const actor = server.ctx
  const key = await createKey(actor, {})
  // Verified and in the cache of the edge.
  const { host } = await openRawTunnel(edge, key.token, { name: 'open' })
  edge.relay.hold()
  const opened = attempt(edge, key.token, { name: 'late' })
  await until('claimed', async () => (await listed()).includes('late at one'))
  await revoke(actor, key.id)
  edge.relay.release()
  await opened
  await until('closed', async () => (await fetchHost(edge, host.replace('open', 'late'))).status === 404)
  await until('not listed', async () => (await listed()).length === 0)
  assert.match((await attempt(edge, key.token, { name: 'late' })) ?? '', /revoked/)
})

test('without the control plane: open tunnels go on, recent names can be opened again, others are refused', async (t) => {
  const { server, edges, key, listed } = await startTwoEdges(t)
  const [edge, other] = edges
  const another = await createKey(server.ctx, {})
  const held = await openRawTunnel(edge, key, { name: 'held' })
  const open = await openRawTunnel(edge, key, { name: 'open' })
  open.respond(OK)
  await openRawTunnel(edge, another.token, { name: 'revoked' })
  edge.relay.cut()
  held.close()
  // As long as revocations were received a moment ago, keys are in the cache and names cannot be claimed.
  assert.match(
    (await attempt(edge, key, { name: 'new' })) ?? '',
    /cannot reach its control plane to claim the name/,
  )
  const refusal = /cannot reach its control plane to verify the key/
  await until(
    'keys have to be verified',
    async () => {
      // An edge limits how often a workspace opens tunnels.
      await sleep(100)
      return refusal.test((await attempt(edge, key, { name: 'new' })) ?? '')
    },
    20_000,
  )
  assert.equal((await fetchHost(edge, open.host)).status, 200)
  const again = await openRawTunnel(edge, key, { name: 'held' })
  again.respond(OK)
  assert.equal((await fetchHost(edge, again.host)).status, 200)
  assert.match((await attempt(edge, another.token, { name: 'held' })) ?? '', refusal)
  await revoke(server.ctx, another.id)
  edge.relay.mend()
  await until('reported', async () => `${await listed()}` === 'held at one,open at one', 20_000)
  assert.match((await attempt(other, key, { name: 'held' })) ?? '', /in use/)
})

test('a name that another edge opened while the first was cut off stays there: the client of the first exits', async (t) => {
  const { server, edges, key, listed } = await startTwoEdges(t)
  const local = await startLocal(t)
  const [first, second] = edges
  const tunnel = await openTunnel(t, { edge: first, key, port: local.port, name: 'app' })
  first.relay.cut()
  await expireLease(server, first.id)
  assert.equal(await attempt(second, key, { name: 'app' }), undefined)
  assert.equal((await fetchHost(first, tunnel.host)).status, 200)
  first.relay.mend()
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 1)
  assert.match(stderr, /"error":"closed"/)
  assert.deepEqual(await listed(), ['app at two'])
})

test('an edge that does not listen does not replace the one that runs with its credential', async (t) => {
  const { server } = await startTwoEdges(t)
  const { token } = await addEdge(server, 'three')
  const env = (folder: string) => ({
    ADIT_URL: server.url,
    ADIT_EDGE_KEY: token,
    ADIT_EDGE_FOLDER: join(createFolder(t), folder),
  })
  const edge = await startTunnelEdge(t, { env: env('a') })
  await openRawTunnel(edge, server.key.token, { name: 'app' })
  const session = () =>
    server.services.store.db.selectFrom('edge_sessions').select('session').orderBy('session').execute()
  const before = await session()
  await assert.rejects(
    startTunnelEdge(t, { env: { ...env('b'), ADIT_EDGE_PORT: String(edge.port) } }),
    /Another program listens on/,
  )
  assert.deepEqual(await session(), before)
})
