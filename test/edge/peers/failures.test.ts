// Edges, clients and connections between edges that fail while a request is in progress: a GET is repeated at
// another edge, and anything else is never sent twice.
import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, test } from 'node:test'
import { cleanUpInBackground, type Test } from '../../support/cleanup.ts'
import { PeerEdges } from '../../support/edges/peer-edges.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { startRelay } from '../../support/network/relay.ts'
import { until } from '../../support/until.ts'

const cluster = await PeerEdges.create({ after })
const [one, two, entry] = [
  await cluster.start('edge_1'),
  await cluster.start('edge_2'),
  await cluster.start('edge_entry'),
]
/** Between the entry edge and the first one. */
const relay = await startRelay({ after }, `http://127.0.0.1:${one.peerPort}`)
const host = 'app.acme.tunnels.test'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n'

type Client = Awaited<ReturnType<typeof openRawTunnel>>
let first: Client
let second: Client
/** The first client does not respond, and counts requests. */
let isSilent = false
let received = 0

/** The first edge is asked first: of edges with as few requests, the one that was described first is used. */
beforeEach(async () => {
  relay.mend()
  cluster.addresses.set('edge_1', `127.0.0.1:${relay.port}`)
  first = await openRawTunnel(one, cluster.key, { name: 'app' })
  received = 0
  isSilent = false
  first.onStream((stream) =>
    stream.on('data', (chunk) => {
      if (!isSilent) stream.write(`${OK}one`)
      else if (/^[A-Z]+ \//.test(String(chunk))) received += 1
    }),
  )
  // The answer to an earlier question may be on its way.
  await until('the first client serves', async () => (await fetchBody()) === 'one')
  second = await openRawTunnel(two, cluster.key, { name: 'app' })
  second.respond(`${OK}two`)
})
afterEach(async () => {
  for (const { close } of [first, second]) close()
  await until('the tunnels are closed', () => [...(cluster.locations.get(host) ?? [])].length === 0)
})

const send = (method = 'GET') =>
  fetchHost(entry, host, { method, body: Buffer.from(method === 'POST' ? 'body' : '') })
const fetchBody = async () => String((await send()).body)

/** Sends a request that the first client gets and does not respond to, and calls `fail`. */
async function failDuring(method: string, fail: () => void) {
  isSilent = true
  const response = send(method)
  await until('the first client has the request', () => received === 1)
  fail()
  return { status: (await response).status, body: String((await response).body) }
}

const FAILURES: [string, () => void][] = [
  ['the client is gone', () => first.close()],
  ['the connection between the edges is cut', () => relay.cut()],
  ['the connection between the edges is silent', () => relay.blackhole()],
  ['the edge leaves the cluster', () => cluster.removePeer('edge_1')],
]

for (const [what, fail] of FAILURES) {
  test(`${what}: a GET is repeated at another edge`, async () => {
    const { status, body } = await failDuring('GET', fail)
    assert.deepEqual([status, body], [200, 'two'])
    assert.equal(await fetchBody(), 'two')
  })

  test(`${what}: a POST is not sent again`, async () => {
    const { status } = await failDuring('POST', fail)
    assert.ok(status === 502 || status === 503, `status ${status}`)
    assert.equal(received, 1)
    assert.deepEqual(second.requests(), [])
  })
}

test('a GET with a password is repeated at another edge, and not at the one that failed', async () => {
  const request = { name: 'protected', access: { basicAuth: { user: 'ann', password: 'a password' } } }
  const headers = { authorization: `Basic ${Buffer.from('ann:a password').toString('base64')}` }
  const resetting = await openRawTunnel(one, cluster.key, request)
  let resets = 0
  resetting.onStream((stream) =>
    stream.on('data', () => {
      resets += 1
      stream.destroy()
    }),
  )
  const get = () => fetchHost(entry, resetting.host, { headers })
  // It is described first, so it is asked first.
  await until('the first edge is asked', async () => (await get()).status === 502)
  const other = await openRawTunnel(two, cluster.key, request)
  other.respond(`${OK}two`)
  await until('both edges are known', () => cluster.locations.get(resetting.host)?.size === 2)
  resets = 0
  assert.equal(String((await get()).body), 'two')
  assert.equal(resets, 1)
  for (const { close } of [resetting, other]) close()
})

test('a request that fails at an edge is counted by its cause, and is a forwarded request again', async () => {
  const { instruments } = entry.metrics
  const [before, lost] = [instruments.forwarded, instruments.forwardFailures.no_response ?? 0]
  await failDuring('GET', () => relay.cut())
  assert.equal(instruments.forwarded - before, 2)
  assert.equal((instruments.forwardFailures.no_response ?? 0) - lost, 1)
})

test('a request counts once, also if it is repeated at another edge', async () => {
  const before = { ...entry.usage }
  await send()
  const once = { ...entry.usage }
  await failDuring('GET', () => first.close())
  assert.equal(entry.usage.requests - once.requests, 1)
  assert.equal(entry.usage.bytesIn - once.bytesIn, once.bytesIn - before.bytesIn)
  assert.equal(entry.usage.bytesOut - once.bytesOut, once.bytesOut - before.bytesOut)
})

test('a location that is out of date is corrected by the edge', async () => {
  first.close()
  await until('the location is removed', () => !cluster.locations.get(host)?.has('edge_1'))
  cluster.locate(host, 'edge_1', 'edge_2')
  assert.equal(await fetchBody(), 'two')
  second.close()
  await until('the locations are removed', () => !cluster.locations.get(host)?.has('edge_2'))
  cluster.locate(host, 'edge_1', 'edge_2')
  assert.equal((await send()).status, 404)
  cluster.locate(host)
})

test('an edge that cannot be reached is 503 until it can be', async () => {
  second.close()
  relay.cut()
  const { forwardFailures } = entry.metrics.instruments
  const before = forwardFailures.tunnel_unreachable ?? 0
  await until('requests are rejected', async () => (await send()).status === 503)
  assert.ok((forwardFailures.tunnel_unreachable ?? 0) > before)
  assert.match(await fetchBody(), /cannot be reached from here/)
  relay.mend()
  await until('requests are forwarded again', async () => (await fetchBody()) === 'one')
})

test('an edge that stops completes requests of other edges, and gets no new ones', async (t: Test) => {
  cleanUpInBackground(t as never)
  const stopping = await cluster.start('edge_3')
  const client = await openRawTunnel(stopping, cluster.key, { name: 'stopping' })
  const other = await openRawTunnel(two, cluster.key, { name: 'stopping' })
  other.respond(`${OK}two`)
  cluster.locate(client.host, 'edge_3')
  let respond = () => {}
  client.onStream((stream) =>
    stream.once('data', () => {
      respond = () => stream.write(`${OK}old`)
    }),
  )
  const response = fetchHost(entry, client.host)
  await until('the request is in progress', () => client.streams().length === 1)
  cluster.locate(client.host, 'edge_3', 'edge_2')
  const stopped = stopping.stop()
  await until('others go to another edge', async () => {
    const { body } = await fetchHost(entry, client.host)
    return String(body) === 'two'
  })
  respond()
  assert.equal(String((await response).body), 'old')
  client.close()
  other.close()
  await stopped
})
