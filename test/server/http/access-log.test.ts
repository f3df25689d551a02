// The access log: what is in it at which level.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caller } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { run, startServing } from '../../support/processes/process.ts'

/** The lines of the access log after some requests: level, route and status. */
async function logRequests(t: Test, env: Record<string, string>): Promise<string[]> {
  const database = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  const running = await startServing(t, { ...database, ...env })
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
  running.child.kill('SIGTERM')
  const { stderr } = await running.ended
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
