// The response cache: a hit is the same as a miss.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DAY_MS } from '../../../src/lib/time.ts'
import { revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { provision } from '../../../src/server/domain/workspaces/manage.ts'
import { addWorkspace, caller, operator, serve, type TestServer } from '../../support/api/server.ts'
import { addUsage } from '../../support/api/usage.ts'
import { createDatabase, engines } from '../../support/databases/create.ts'
import { sendRaw } from '../../support/network/raw.ts'
import { readSource, stableContent } from '../../support/network/response-source.ts'
import { pluck } from '../../support/pluck.ts'
import { startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const traffic = (server: TestServer, requests: bigint) =>
  addUsage(server, {
    ...{ requests, bytesIn: requests, bytesOut: requests * 2n, events: 3n },
    lastSeen: server.services.clock(),
  })

for (const engine of engines) {
  const cacheable =
    engine === 'sqlite' ? ['/workspace', '/usage?days=365', '/tokens?limit=1'] : ['/workspace']
  for (const path of cacheable)
    test(`${engine}: ${path} is the same from the cache, with its own request id`, async (t) => {
      const server = await serve(t, { engine })
      await traffic(server, 7n)
      const first = await server.call('GET', path)
      // Not always the next one: the node itself commits from time to time.
      let again = first
      await until('a cache hit', async () => {
        again = await server.call('GET', path)
        return readSource(again) !== readSource(first)
      })
      const third = await server.call('GET', path, { headers: { 'x-request-id': 'mine' } })
      for (const response of [again, third]) assert.deepEqual(stableContent(response), stableContent(first))
      assert.equal(third.headers.get('x-request-id'), 'mine')
      const other = await addWorkspace(server, 'other')
      assert.notEqual((await server.call('GET', path, { key: other.key.token })).text, first.text)
    })

  test(`${engine}: a change is visible in the next response, cached or not`, async (t) => {
    const server = await serve(t, { engine })
    const { key, workspace } = await addWorkspace(server, 'new')
    const call = caller(`${server.url}/api/v1`, key.token)
    for (let turn = 0; turn < 3; turn++)
      assert.equal((await call('GET', '/workspace')).json.provisioned, false)
    await provision(server.services, operator, 'new')
    for (let turn = 0; turn < 3; turn++)
      assert.equal((await call('GET', '/workspace')).json.provisioned, true)
    for (let requests = 1n; requests < 20n; requests++) {
      await traffic(server, requests)
      for (let turn = 0; turn < 2; turn++)
        assert.equal((await server.call('GET', '/usage')).json.series.at(-1).bytes, Number(requests) * 3)
    }
    await revoke({ ...server.services, actor: operator, workspaceId: workspace.id }, key.id)
    assert.equal((await call('GET', '/workspace')).status, 401)
  })
}

test('the usage window moves at midnight, also for cached responses', async (t) => {
  let now = Date.parse('2026-03-01T23:59:59.000Z')
  const server = await serve(t, { engine: 'sqlite', clock: () => now })
  await traffic(server, 5n)
  for (let turn = 0; turn < 3; turn++)
    assert.equal((await server.call('GET', '/usage?days=1')).json.totalBytes, 15)
  now += DAY_MS
  assert.equal((await server.call('GET', '/usage?days=1')).json.totalBytes, 0)
})

const sqlite = await serve({ after }, { engine: 'sqlite' })

test('conditional requests, HEAD and requests with two hosts are not served from the cache', async () => {
  const { call, key, url } = sqlite
  for (let turn = 0; turn < 3; turn++) await call('GET', '/workspace')
  const { headers } = await call('GET', '/workspace')
  const etag = headers.get('etag') ?? ''
  assert.equal((await call('GET', '/workspace', { headers: { 'if-none-match': etag } })).status, 304)
  const head = await call('HEAD', '/workspace')
  assert.deepEqual([head.status, head.text, head.headers.get('etag')], [200, '', etag])
  const raw = (head: string) =>
    sendRaw(url, `GET /api/v1/workspace HTTP/1.1\r\n${head}Authorization: Bearer ${key.token}\r\n\r\n`, 500)
  assert.equal((await raw('Host: adit\r\n')).status, 200)
  assert.equal((await raw('Host: adit\r\nHost: other\r\n')).status, 400)
  assert.equal((await raw('')).status, 400)
})

test('long URLs and requests with Connection: close are not served from the cache', async () => {
  const { call } = sqlite
  const miss = readSource(await call('GET', '/unknown'))
  await until('a cache hit', async () => readSource(await call('GET', '/workspace')) !== miss)
  for (let turn = 0; turn < 5; turn++) {
    const long = await call('GET', `/workspace?${'x'.repeat(300)}=1`)
    const closing = await call('GET', '/workspace', { headers: { connection: 'close' } })
    for (const response of [long, closing])
      assert.deepEqual([response.status, readSource(response)], [200, miss])
  }
})

test('with a rate limit, every request counts', async (t) => {
  const { call } = await serve(t, { engine: 'sqlite', env: { ADIT_RATE_LIMIT: '4' } })
  const statuses = []
  for (let turn = 0; turn < 6; turn++) statuses.push((await call('GET', '/workspace')).status)
  assert.deepEqual(statuses, [200, 200, 200, 200, 429, 429])
})

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'

test('hits and misses are logged alike, with the trace, and a key sent as a request id is masked', async (t) => {
  const running = await startServing(t, {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_TRUSTED_PROXIES: '127.0.0.1',
    ADIT_ACCESS_LOG: 'all',
  })
  const call = caller(running.api, running.token as string)
  const turns = [1, 2, 3, 4].map((turn) => `turn-${turn}`)
  for (const id of [...turns, running.token as string])
    await call('GET', '/workspace', {
      headers: {
        'x-request-id': id,
        'x-forwarded-for': '203.0.113.7, "strange"',
        traceparent: `00-${TRACE_ID}-b7ad6b7169203331-01`,
      },
    })
  await running.waitFor(/adit_\*\*\*/, 'stderr')
  const { stderr } = await running.stop()
  assert.ok(!stderr.includes(running.token as string))
  const lines = stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'request completed')
  assert.equal(lines.length, turns.length + 1)
  const constant = lines.map(({ time, ms, requestId, ...rest }) => {
    assert.ok(Math.abs(Date.parse(time) - Date.now()) < 60_000 && ms >= 0)
    return rest
  })
  for (const line of constant) assert.deepEqual(line, constant[0])
  assert.deepEqual(pluck(lines, 'requestId'), [...turns, 'adit_***'])
  assert.deepEqual(
    [constant[0].method, constant[0].route, constant[0].status, constant[0].clientIp, constant[0].traceId],
    ['GET', '/api/v1/workspace', 200, '127.0.0.1', TRACE_ID],
  )
  assert.match(constant[0].callerId, /^tok_/)
})
