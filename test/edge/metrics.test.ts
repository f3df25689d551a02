// Metrics of an edge.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { EdgeInstruments } from '../../src/lib/metrics/edge-instruments.ts'
import { assertDocumented, promtool, scrape, withoutPromtool } from '../support/api/metrics.ts'
import { openRawTunnel, startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { fetchHost } from '../support/edges/tunnels.ts'
import { sendRaw } from '../support/network/raw.ts'
import { freePort } from '../support/processes/ports.ts'
import { until } from '../support/until.ts'

const port = await freePort()
const { edge, keys } = await startStandaloneEdge({ after }, ['acme'], { ADIT_METRICS_PORT: String(port) })
const [key = ''] = keys
const metrics = () => scrape(`http://127.0.0.1:${port}/metrics`)
const responses = (statusClass: string) =>
  'http_server_request_duration_seconds_count' +
  `{surface="tunnel",operation="request",status_class="${statusClass}"}`

test('tunnels, requests, bytes, rejections and verdicts are counted', async () => {
  const tunnel = await openRawTunnel(edge, key, { name: 'app' })
  tunnel.respond('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
  await fetchHost(edge, tunnel.host)
  await fetchHost(edge, 'none.tunnels.test')
  await assert.rejects(openRawTunnel(edge, 'adit_unknown'))
  const values = await metrics()
  assert.equal(values.get('adit_edge_tunnels_open{type="http"}'), 1)
  assert.equal(values.get('adit_edge_tunnel_clients'), 1)
  assert.equal(values.get('adit_edge_requests_total'), 1)
  assert.ok((values.get('adit_edge_bytes_total{direction="out"}') ?? 0) >= 5)
  assert.equal(values.get(responses('2xx')), 1)
  assert.equal(values.get('adit_edge_rejected_total{status="404"}'), 1)
  assert.equal(values.get('adit_edge_verifications_total{verdict="valid"}'), 1)
  assert.equal(values.get('adit_edge_verifications_total{verdict="unknown"}'), 1)
  assert.equal(values.get('adit_edge_control_plane_up'), 1)
  tunnel.close()
  await until('the tunnel is closed', async () => (await metrics()).get('adit_edge_tunnel_clients') === 0)
  assert.equal((await metrics()).get('adit_edge_requests_total'), 1)
})

test('an unknown verdict, of a newer control plane, is not counted as another one', () => {
  const instruments = new EdgeInstruments()
  const before = { ...instruments.verdicts }
  instruments.countVerdict('suspended')
  assert.deepEqual(instruments.verdicts, before)
  instruments.countVerdict('expired')
  assert.equal(instruments.verdicts.expired, 1)
})

test('hostile traffic to the edge adds no series to its metrics', async () => {
  const tunnel = await openRawTunnel(edge, key, { name: 'app' })
  const random = () => randomBytes(6).toString('hex')
  // One response for each stream, so that the next request gets another.
  const respond = (status: number) =>
    tunnel.respond(`HTTP/1.1 ${status} ${random()}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
  async function attack() {
    for (const status of [200, 299, 418, 499])
      for (const host of [tunnel.host, `${random()}.tunnels.test`, random()])
        for (const line of [`GET /${random()}`, `M-SEARCH /.adit/${random()}`, `${random()} http://x/`]) {
          respond(status)
          await sendRaw(edge.url, `${line} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
        }
  }
  const series = async () =>
    [...(await metrics()).keys()].filter((name) => !/^(nodejs|process)_/.test(name)).sort()
  await attack()
  const before = await series()
  await attack()
  assert.deepEqual(await series(), before)
})

test('docs/operations/metrics.md lists every metric of an edge, with its type and labels', async () => {
  assertDocumented(await metrics(), ['An edge', 'The process'])
})

test('promtool accepts the metrics of an edge', { skip: withoutPromtool }, async () => {
  assert.equal(promtool(['check', 'metrics'], (await metrics()).text), '')
})
