import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { startMetricsListener } from '../../../src/lib/metrics/listener.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import { insertOperatorAlert } from '../../../src/server/store/notices/alerts.ts'
import { assertDocumented, promtool, scrape, withoutPromtool } from '../../support/api/metrics.ts'
import { serve, serveWithEdge, type TestServer } from '../../support/api/server.ts'
import { counter, today } from '../../support/api/usage.ts'
import { engines } from '../../support/databases/create.ts'
import { ambiguousFramings, sendRaw } from '../../support/network/raw.ts'
import { until } from '../../support/until.ts'

const enabled = { ADIT_METRICS_PORT: '0' }
const requestCount = (surface: string, operation: string, statusClass: string) =>
  'http_server_request_duration_seconds_count' +
  `{surface="${surface}",operation="${operation}",status_class="${statusClass}"}`

const shared = serve({ after }, { engine: 'sqlite', env: enabled })
// Reported by the tests that await it; on Citus these do not run.
shared.catch(() => {})

test('a request counts once, by surface, operation and status class, whoever responds to it', async () => {
  const { call, metricsUrl, url } = await shared
  // The first response is Fastify's, the others are from the response cache.
  for (let n = 0; n < 3; n++) await call('GET', '/workspace')
  await call('HEAD', '/workspace')
  await call('GET', '/workspace', { key: null })
  await call('DELETE', '/tokens/tok_unknown')
  await fetch(`${url}/healthz`)
  await fetch(`${url}/no-such-page`)
  const values = await scrape(metricsUrl)
  assert.equal(values.get(requestCount('api', 'workspace.read', '2xx')), 4)
  assert.equal(values.get(requestCount('api', 'workspace.read', '4xx')), 1)
  assert.equal(values.get(requestCount('api', 'tokens.revoke', '4xx')), 1)
  assert.equal(values.get(requestCount('health', 'health.read', '2xx')), 1)
  assert.equal(values.get(requestCount('none', 'none', '4xx')), 1)
})

test('metrics are on a listener of their own, which serves nothing else', async (t) => {
  const { metricsUrl = '', url } = await shared
  assert.equal((await fetch(`${url}/metrics`)).status, 404)
  assert.equal((await fetch(new URL('/', metricsUrl))).status, 404)
  assert.equal((await fetch(metricsUrl, { method: 'POST' })).status, 404)
  assert.equal((await fetch(metricsUrl, { method: 'HEAD' })).status, 200)
  assert.match((await sendRaw(metricsUrl, 'GET /metrics HTTP/1.1\r\n\r\n')).head, /^HTTP\/1\.1 400/)
  const other = await serve(t, { engine: 'sqlite' })
  assert.equal(other.metricsUrl, undefined)
  const { port } = new URL(metricsUrl)
  await assert.rejects(serve(t, { engine: 'sqlite', env: { ADIT_METRICS_PORT: port } }), {
    message: `Another program listens on 127.0.0.1:${port}. Stop it, or set ADIT_METRICS_PORT to a free port.`,
  })
})

test('a Transfer-Encoding other than one "chunked" of HTTP/1.1 is 400, and the metrics listener closes', async () => {
  const { metricsUrl = '' } = await shared
  for (const [version, header] of ambiguousFramings) {
    const bytes = `GET /metrics HTTP/${version}\r\nHost: x\r\n${header}\r\n\r\n0\r\n\r\n`
    const { status, body } = await sendRaw(metricsUrl, `${bytes}GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n`)
    assert.equal(status, 400, header)
    assert.doesNotMatch(body, /HTTP\/1\.1/, header)
  }
})

test('clients that only connect do not prevent a scrape', async (t) => {
  const source = { contentType: 'text/plain', metrics: async () => 'up 1\n' }
  const listener = await startMetricsListener({ host: '127.0.0.1', port: 0 }, source, (error) =>
    assert.fail(String(error)),
  )
  t.after(listener.stop)
  for (let count = 0; count < 60; count++) {
    const socket = connect(Number(new URL(listener.url).port), '127.0.0.1').on('error', () => {})
    t.after(() => socket.destroy())
    await once(socket, 'connect')
  }
  const request = 'GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  assert.equal((await sendRaw(listener.url, request)).body, 'up 1\n')
})

/** Requests that differ in everything that a client can choose. */
function hostileRequests(server: TestServer): string[] {
  const random = (bytes = 6) => randomBytes(bytes).toString('hex')
  const targets = [
    `/${random()}`,
    `/api/v1/${random()}`,
    `/api/v1/tokens/tok_${random()}`,
    `/api/v1/usage?days=${random()}`,
    `/api/v1/workspace?${random()}=${random()}`,
    `/edge/v1/${random()}`,
    `/edge/frp/adit_edge_${random()}`,
    `/dashboard/api/${random()}`,
    `/w/${random()}`,
    `/assets/${random()}.js`,
    `//${random()}/../${random()}`,
    `http://${random()}.example/api/v1/workspace`,
    `/%${random(1)}${random()}`,
  ]
  const methods = ['GET', 'HEAD', 'DELETE', 'PROPFIND', 'OPTIONS', 'M-SEARCH']
  const credentials = [server.key.token, random(24), '']
  return targets.flatMap((target) =>
    methods.map((method, n) =>
      [
        `${method} ${target} HTTP/1.1`,
        `Host: ${random()}.example`,
        `Authorization: Bearer ${credentials[n % credentials.length]}`,
        `User-Agent: ${random()}`,
        `X-Request-Id: ${random()}`,
        `Traceparent: 00-${random(16)}-${random(8)}-01`,
      ].join('\r\n'),
    ),
  )
}

test('metrics bounded under hostile traffic: what clients send adds no series', async () => {
  const server = await shared
  const attack = async () => {
    for (const request of hostileRequests(server))
      await sendRaw(server.url, `${request}\r\nConnection: close\r\n\r\n`)
    await sendRaw(server.url, `${randomBytes(9).toString('hex')} / HTTP/1.1\r\n\r\n`)
  }
  const series = async () =>
    [...(await scrape(server.metricsUrl)).keys()].filter((name) => !/^(nodejs|process)_/.test(name)).sort()
  await attack()
  const before = await series()
  for (let round = 0; round < 3; round++) await attack()
  assert.deepEqual(await series(), before)
})

test('docs/operations/metrics.md lists every metric of the server, with its type and labels', async () => {
  assertDocumented(await scrape((await shared).metricsUrl), ['The server', 'The process'])
})

for (const engine of engines)
  test(`${engine}: verdicts, revocations, usage, streams and connections are counted`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, env: enabled })
    const spare = (await server.post('/tokens', {})).json
    await edge.verify(spare.token)
    // From Fastify, then from the response cache.
    for (let n = 0; n < 3; n++) await edge.verify(server.key.token)
    await edge.verify('adit_malformed')
    await server.call('DELETE', `/tokens/${spare.id}`)
    await edge.verify(spare.token)
    const item = counter({ day: today(), requests: 1 })
    await edge.report({ epoch: 'e1', counters: [item, { ...item, workspace: 'unknown' }] })
    const leaving = new AbortController()
    const stream = await fetch(`${server.url}/edge/v1/key-changes`, {
      headers: { authorization: `Bearer ${edge.token}` },
      signal: leaving.signal,
    })
    await stream.body?.getReader().read()

    const values = await scrape(server.metricsUrl)
    const verified = (kind: string, cache: string, verdict: string) =>
      values.get(`adit_verifications_total{kind="${kind}",cache="${cache}",verdict="${verdict}"}`)
    // Also the request that created the key.
    assert.equal(verified('key', 'miss', 'valid'), 2)
    assert.equal(verified('key', 'hit', 'valid'), 4)
    assert.equal(verified('key', 'none', 'malformed'), 1)
    assert.equal(verified('key', 'hit', 'revoked'), 1)
    assert.equal(verified('edge', 'miss', 'valid'), 1)
    assert.ok((verified('edge', 'hit', 'valid') ?? 0) >= 6)
    assert.equal(values.get('adit_propagation_wait_seconds_count'), 1)
    assert.equal(values.get('adit_lease_valid'), 1)
    assert.ok((values.get('adit_change_log_sequence') ?? 0) > 0)
    assert.equal(values.get('adit_usage_reports_total'), 1)
    assert.equal(values.get('adit_usage_items_total{result="accepted"}'), 1)
    assert.equal(values.get('adit_usage_items_total{result="unknown_workspace"}'), 1)
    assert.equal(values.get('adit_usage_merge_duration_seconds_count'), 1)
    assert.equal(values.get('adit_change_streams_open'), 1)
    assert.equal(values.get('adit_database_connections_max'), engine === 'postgres' ? 10 : undefined)
    leaving.abort()
    await until(
      'the stream is closed',
      async () => (await scrape(server.metricsUrl)).get('adit_change_streams_open') === 0,
    )
  })

for (const engine of engines)
  test(`${engine}: emails and webhook events that wait are counted`, async (t) => {
    const { services, workspace, metricsUrl } = await serve(t, { engine, env: enabled })
    const later = Date.now() + DAY_MS
    await services.store.transaction(async (db) => {
      const alert = { kind: 'edge-silent', subject_id: 'edge_1', dedup_key: '', created_at: 0, detail: '{}' }
      await insertOperatorAlert(db, { ...alert, attempts: 0, due_at: later })
      const endpoint = {
        id: 'wh_1',
        workspace_id: workspace.id,
        url: 'https://x',
        description: '',
        secret: 'x',
      }
      const queue = { created_at: 0, last_position: 3, next_position: 1, due_at: later, failing_since: 1 }
      await db
        .insertInto('webhook_endpoints')
        .values({ ...endpoint, ...queue })
        .execute()
    })
    const values = await scrape(metricsUrl)
    assert.equal(values.get('adit_mail_queue'), 1)
    assert.equal(values.get('adit_webhook_queue'), 3)
    assert.equal(values.get('adit_webhook_endpoints_failing'), 1)
  })

test('promtool accepts the metrics', { skip: withoutPromtool }, async () => {
  const { text } = await scrape((await shared).metricsUrl)
  assert.equal(promtool(['check', 'metrics'], text), '')
})
