// Connections that fall silent without being closed: within a second, a GET gets its response from another
// client.
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { PeerEdges } from '../../support/edges/peer-edges.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { startRelay } from '../../support/network/relay.ts'
import { until } from '../../support/until.ts'

const WITHIN_MS = 1_000
const cluster = await PeerEdges.create({ after })
const [one, two, entry] = [
  await cluster.start('edge_1'),
  await cluster.start('edge_2'),
  await cluster.start('edge_entry'),
]
/** Between the entry edge and the first one. */
const link = await startRelay({ after }, `http://127.0.0.1:${one.peerPort}`)
/** Between the first client and the first edge. */
const uplink = await startRelay({ after }, one.url)
const host = 'app.acme.tunnels.test'
const respondWith = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`

type Client = Awaited<ReturnType<typeof openRawTunnel>>
let first: Client
let second: Client
/** When the first client responds. */
let delayMs = 0
let received = 0

beforeEach(async () => {
  cluster.addresses.set('edge_1', `127.0.0.1:${link.port}`)
  first = await openRawTunnel(uplink, cluster.key, { name: 'app' })
  delayMs = 0
  received = 0
  first.onStream((stream) =>
    stream.on('data', () => {
      received += 1
      setTimeout(() => stream.writable && stream.write(respondWith('one')), delayMs)
    }),
  )
  // It is described first, so it is asked first.
  await until('the first client serves', async () => (await fetchBody()) === 'one')
  second = await openRawTunnel(two, cluster.key, { name: 'app' })
  second.respond(respondWith('two'))
  await until('both edges are known', () => cluster.locations.get(host)?.size === 2)
})
afterEach(async () => {
  link.release()
  uplink.release()
  for (const { close } of [first, second]) close()
  // A silent connection is not closed by its other end.
  uplink.cut()
  uplink.mend()
  await until('the tunnels are closed', () => [...(cluster.locations.get(host) ?? [])].length === 0)
})

const send = (edge: { port: number }, method = 'GET') =>
  fetchHost(edge, host, { method, body: Buffer.from(method === 'POST' ? 'body' : '') })
const fetchBody = async (edge: { port: number } = entry) => String((await send(edge)).body)

async function assertSoon(edge: { port: number }, expected: string) {
  const sentAt = performance.now()
  assert.equal(await fetchBody(edge), expected)
  const ms = performance.now() - sentAt
  assert.ok(ms < WITHIN_MS, `${ms} ms`)
}

const FAILURES: [string, { port: number }, () => void][] = [
  ['the connection between the edges', entry, () => link.blackhole()],
  ['the connection of a client, at another edge', entry, () => uplink.blackhole()],
  ['the connection of a client', one, () => uplink.blackhole()],
]

for (const [what, edge, fail] of FAILURES)
  test(`${what} is silent: a GET is served by another client within a second`, async () => {
    fail()
    for (let request = 0; request < 4; request++) await assertSoon(edge, 'two')
    assert.equal((await send(edge, 'POST')).status, 200)
  })

test('a client of a pool is silent: a GET is served by another one of the pool within a second', async () => {
  second.close()
  second = await openRawTunnel(one, cluster.key, { name: 'app', pool: true })
  second.respond(respondWith('pooled'))
  uplink.blackhole()
  for (let request = 0; request < 4; request++) await assertSoon(one, 'pooled')
})

test('a client that gets nothing any more, and sends what it still has: a GET is served by another one', async () => {
  const before = received
  const earlier = []
  for (delayMs of [500, 1_000]) {
    earlier.push(fetchBody(one))
    await until('the client has the request', () => received === before + earlier.length)
  }
  uplink.hold()
  await assertSoon(one, 'two')
  await Promise.all(earlier)
})

test('a POST on a silent connection is not sent again', async () => {
  link.blackhole()
  const { status } = await send(entry, 'POST')
  assert.equal(status, 502)
  assert.deepEqual(second.requests(), [])
})

test('a client that responds slowly gets the request once', async () => {
  delayMs = 2_000
  const before = received
  assert.equal(await fetchBody(), 'one')
  assert.equal(received - before, 1)
})

test('a connection that is no longer silent is used again, and was not closed', async () => {
  link.hold()
  await assertSoon(entry, 'two')
  link.release()
  const { size } = one.tunnels
  await until('it serves', async () => (await fetchBody()) === 'one')
  assert.equal(one.tunnels.size, size)
})
