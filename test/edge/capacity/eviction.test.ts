// A tunnel at capacity: slow requests of a network that has many are evicted for those of others.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { scrape } from '../../support/api/metrics.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { openOwnTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openSocket } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

const PER_ADDRESS = 250
const metricsPort = await freePort()
const { edge, keys } = await startStandaloneEdge({ after }, ['acme'], {
  ADIT_METRICS_PORT: String(metricsPort),
})
const key = keys[0] as string
const from = (client: string) => ({ headers: { 'x-forwarded-for': client } })

const readMetric = async (series: string) =>
  (await scrape(`http://127.0.0.1:${metricsPort}/metrics`)).get(series) ?? 0
const countEvicted = (reason: string) => readMetric(`adit_edge_evicted_total{reason="${reason}"}`)

/** Uploads that send a byte from time to time, behind a trusted proxy. */
function startUploads(t: Test, host: string, client: string, count: number) {
  const uploads = Array.from({ length: count }, () => {
    const socket = connect(edge.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      `POST / HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: ${client}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    )
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    return { socket, received: () => received }
  })
  const sending = setInterval(() => {
    for (const { socket } of uploads) if (socket.writable) socket.write('1\r\nx\r\n')
  }, 1_000)
  atEnd(t, () => {
    clearInterval(sending)
    for (const { socket } of uploads) socket.destroy()
  })
  return uploads
}

test('slow uploads from two addresses do not make a tunnel unavailable to others', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  const before = await countEvicted('capacity')
  // Networks with one request each: a WebSocket, and an upload as slow as the others.
  const idle = await openSocket(edge, host, from('198.51.100.1'))
  const [upload] = startUploads(t, host, '198.51.100.2', 1)
  const attack = [
    ...startUploads(t, host, '203.0.113.1', PER_ADDRESS),
    ...startUploads(t, host, '2001:db8:1::1', PER_ADDRESS),
  ]
  await until('the tunnel is full', () => local.requests.length >= 2 * PER_ADDRESS - 2)
  for (let visitor = 1; visitor <= 20; visitor += 1)
    assert.equal((await fetchHost(edge, host, from(`192.0.2.${visitor}`))).status, 200)
  assert.equal(idle.readyState, idle.OPEN)
  idle.send('hello')
  assert.equal(String((await once(idle, 'message'))[0]), 'hello')
  assert.equal(upload?.received(), '')
  upload?.socket.write('0\r\n\r\n')
  await until('the upload is complete', () => upload?.received().startsWith('HTTP/1.1 200 '))
  const evicted = attack.map(({ received }) => received()).filter((received) => received !== '')
  assert.ok(evicted.length > 0)
  for (const response of evicted) assert.match(response, /^HTTP\/1\.1 (503|429) /)
  assert.ok(evicted.some((response) => /slowest of many requests from your network/.test(response)))
  assert.ok((await countEvicted('capacity')) > before)
})

test('networks with equally many requests do not evict requests of each other', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  const [first, second] = ['203.0.113.1', '203.0.113.2'].map((client) =>
    startUploads(t, host, client, PER_ADDRESS),
  )
  await until('the tunnel is full', () => local.requests.length === 2 * PER_ADDRESS)
  const before = await countEvicted('capacity')
  for (const client of ['203.0.113.1', '203.0.113.2'])
    assert.equal((await fetchHost(edge, host, from(client))).status, 429)
  assert.equal(await countEvicted('capacity'), before)
  assert.ok([...(first ?? []), ...(second ?? [])].every(({ received }) => received() === ''))
})

test('a request that was admitted by an eviction is not evicted next', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  startUploads(t, host, '203.0.113.1', PER_ADDRESS)
  startUploads(t, host, '203.0.113.2', PER_ADDRESS)
  await until('the tunnel is full', () => local.requests.length === 2 * PER_ADDRESS)
  // All of one network, and fewer than a third of the slots: it never has as many as the others.
  const waiting = startUploads(t, host, '198.51.100.1', 160)
  await until('all are admitted', () => local.requests.length === 2 * PER_ADDRESS + waiting.length)
  assert.ok(waiting.every(({ received }) => received() === ''))
})
