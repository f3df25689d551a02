// The access log: what is in it, at which level, and what is only counted.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { caller } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createDatabase, createMigratedDatabase } from '../../support/databases/create.ts'
import { run, startServing } from '../../support/processes/process.ts'

const start = async (t: Test, env: Record<string, string> = {}) => {
  const running = await startServing(t, {
    ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'),
    ADIT_TRUSTED_PROXIES: '127.0.0.1',
    ...env,
  })
  return {
    ...running,
    call: caller(running.api, running.token as string),
    async stopAndReadLog() {
      const { stderr } = await running.stop()
      const lines = stderr.trim().split('\n')
      return lines.map((line) => JSON.parse(line)).filter(({ msg }) => /requests? completed/.test(msg))
    },
  }
}

test('equal requests are counted in one line, which a clean stop writes', async (t) => {
  const { call, stopAndReadLog } = await start(t)
  const before = Date.now()
  let bytes = 0
  for (let turn = 0; turn < 20; turn++) bytes += (await call('GET', '/workspace')).text.length
  await call('GET', '/workspace', { headers: { 'x-forwarded-for': '203.0.113.7' } })
  const lines = await stopAndReadLog()
  assert.deepEqual(
    lines.map(({ msg, clientIp, requests }) => [msg, clientIp, requests]),
    [
      ['requests completed', '127.0.0.1', 20],
      ['requests completed', '203.0.113.7', 1],
    ],
  )
  const { time, since, msMean, msMax, callerId, pid: _, ...rest } = lines[0]
  assert.ok(Date.parse(since) <= before && before <= Date.parse(time))
  assert.ok(msMean > 0 && msMean <= msMax)
  assert.match(callerId, /^tok_/)
  assert.deepEqual(rest, {
    level: 'info',
    msg: 'requests completed',
    method: 'GET',
    route: '/api/v1/workspace',
    status: 200,
    clientIp: '127.0.0.1',
    requests: 20,
    bytes,
  })
})

test('a failure is written at once, and equal ones are counted', async (t) => {
  const { call, waitFor, stopAndReadLog } = await start(t)
  const fail = (id: string, path = '/nowhere') => call('GET', path, { headers: { 'x-request-id': id } })
  await fail('first')
  await waitFor(/"requestId":"first".*"path":"\/api\/v1\/nowhere"/, 'stderr')
  await fail('second', '/elsewhere')
  await fail('unlike', '/usage?days=0')
  const lines = await stopAndReadLog()
  assert.deepEqual(
    lines.map(({ msg, requestId, status, requests }) => [msg, requestId, status, requests]),
    [
      ['request completed', 'first', 404, undefined],
      ['request completed', 'unlike', 400, undefined],
      ['requests completed', undefined, 404, 2],
    ],
  )
})

test('a request that takes longer than a second gets a line', async (t) => {
  const { api, token, stopAndReadLog } = await start(t)
  const status = await new Promise((resolve, reject) => {
    const slow = request(`${api}/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
    slow.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
    slow.write('{"label":')
    setTimeout(() => slow.end('"slow"}'), 1_100)
  })
  assert.equal(status, 201)
  const lines = await stopAndReadLog()
  assert.deepEqual(
    lines.map(({ msg, status, ms }) => [msg, status, ms >= 1_000]),
    [['request completed', 201, true]],
  )
})

test('requests of more clients than the log groups are counted, and their failures get limited lines', async (t) => {
  const { url, stopAndReadLog } = await start(t)
  const clients = 5_200
  const visit = (index: number) =>
    fetch(`${url}/nowhere`, {
      headers: { 'x-forwarded-for': `198.18.${index >> 8}.${index & 255}`, accept: 'application/json' },
    }).then((response) => response.text())
  for (let index = 0; index < clients; index += 100)
    await Promise.all(Array.from({ length: 100 }, (_, offset) => visit(index + offset)))
  const lines = await stopAndReadLog()
  const completed = lines.filter(({ msg }) => msg === 'request completed')
  const grouped = lines.filter(({ msg }) => msg === 'requests completed')
  const rest = lines.filter(({ msg }) => msg.startsWith('more requests'))
  const counted = [...grouped, ...rest].reduce((sum, { requests }) => sum + requests, 0)
  assert.equal(completed.length + counted, clients, 'none is missing')
  // A slow machine needs more than one interval for them.
  if (grouped.every(({ since }) => since === grouped[0]?.since))
    assert.deepEqual([completed.length, grouped.length, rest.length], [1_000, 4_000, 1])
  else assert.ok(completed.length <= 2_000)
})

test('ADIT_ACCESS_LOG=off writes nothing of requests', async (t) => {
  const { call, stopAndReadLog } = await start(t, { ADIT_ACCESS_LOG: 'off' })
  await call('GET', '/workspace')
  await call('GET', '/nowhere')
  assert.deepEqual(await stopAndReadLog(), [])
})

/** The lines of the access log after some requests: level, route and status. */
async function logRequests(t: Test, env: Record<string, string>): Promise<string[]> {
  const database = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  const running = await startServing(t, { ...database, ADIT_ACCESS_LOG: 'all', ...env })
  const { stdout } = await run(t, ['admin', 'edge', 'create', 'fra-1', '--json'], database)
  const key = running.token as string
  const verify = (credential: string) =>
    caller(`${running.url}/edge/v1`, credential)('POST', '/keys/verify', { json: { key } })
  const statuses = [
    await fetch(`${running.url}/healthz`),
    await fetch(`${running.url}/readyz`),
    await verify(JSON.parse(stdout).token),
    await verify(key),
    await caller(running.api, key)('GET', '/workspace'),
  ].map(({ status }) => status)
  assert.deepEqual(statuses, [200, 200, 200, 401, 200])
  const { stderr } = await running.stop()
  return stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'request completed')
    .map(({ level, route, status }) => `${level} ${route} ${status}`)
}

test('health checks and requests of edges are not logged by default, unless they fail', async (t) => {
  assert.deepEqual(await logRequests(t, {}), ['info /edge/v1/keys/verify 401', 'info /api/v1/workspace 200'])
})

test('at level debug, every request is logged', async (t) => {
  assert.deepEqual(await logRequests(t, { ADIT_LOG_LEVEL: 'debug' }), [
    'debug /healthz 200',
    'debug /readyz 200',
    'debug /edge/v1/keys/verify 200',
    'info /edge/v1/keys/verify 401',
    'info /api/v1/workspace 200',
  ])
})
