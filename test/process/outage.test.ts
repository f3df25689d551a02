// PostgreSQL goes away and comes back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { SECRET } from '../support/databases.ts'
import { createCluster } from '../support/postgres.ts'
import { run, serving, startProcess, startServing } from '../support/process.ts'
import { caller } from '../support/server.ts'

const until = async (what: string, ms: number, holds: () => Promise<boolean>) => {
  const deadline = performance.now() + ms
  while (!(await holds())) {
    assert.ok(performance.now() < deadline, `${what} within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

for (const how of ['fast', 'kill'] as const)
  test(`PostgreSQL stopped (${how}) and started again: 503 meanwhile, then all is as before`, async (t) => {
    const cluster = await createCluster()
    atEnd(t, () => cluster.remove())
    await cluster.start()
    const env = { ADIT_DATABASE_URL: `${cluster.url}/postgres`, ADIT_LOG_LEVEL: 'info' }
    await run(t, ['admin', 'workspace', 'create', 'acme'], env)
    const token = (await run(t, ['admin', 'key', 'create', '--workspace', 'acme'], env)).stdout.trim()
    const started = await startServing(t, env)
    const call = caller(started.api, token)
    const ready = async () => (await fetch(`${started.url}/readyz`)).status
    const made = (await call('POST', '/tokens')).json

    // Requests of all kinds keep coming through the whole outage; each is answered, and in time.
    const statuses = new Map<number, number>()
    let over = false
    const clients = Array.from({ length: 4 }, async () => {
      while (!over) {
        for (const [method, path] of [
          ['GET', '/workspace'],
          ['POST', '/tokens'],
          ['GET', '/usage'],
          ['DELETE', '/tokens/tok_none'],
        ] as const) {
          const began = performance.now()
          const { status, json, headers } = await call(method, path)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          assert.ok([200, 201, 404, 503].includes(status), `${method} ${path} → ${status}`)
          assert.ok(performance.now() - began < 15_000, 'answered too late')
          if (status === 503) {
            assert.equal(json.error, 'unavailable')
            assert.ok(Number(headers.get('retry-after')) >= 1)
            assert.deepEqual(Object.keys(json), ['error', 'message'])
          }
        }
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    })

    await cluster.stop(how)
    await until('503', 5_000, async () => (await call('GET', '/workspace')).status === 503)
    assert.equal(await ready(), 503)
    assert.equal((await fetch(`${started.url}/healthz`)).status, 200)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    await cluster.start()
    const back = performance.now()
    await until('recovery', 5_000, async () => (await call('GET', '/workspace')).status === 200)
    t.diagnostic(`answered again ${Math.round(performance.now() - back)} ms after PostgreSQL was back`)
    assert.equal(await ready(), 200)
    assert.equal((await call('GET', '/workspace', { key: made.token })).status, 200)
    over = true
    await Promise.all(clients)
    assert.ok((statuses.get(503) ?? 0) > 0)
    started.child.kill('SIGTERM')
    assert.equal((await started.ended).code, 0)
  })

test('a PostgreSQL that hangs is 503 in time, and a stop does not wait for it', async (t) => {
  const cluster = await createCluster()
  atEnd(t, () => cluster.remove())
  await cluster.start()
  const env = { ADIT_DATABASE_URL: `${cluster.url}/postgres`, ADIT_LOG_LEVEL: 'silent' }
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const token = (await run(t, ['admin', 'key', 'create', '--workspace', 'acme'], env)).stdout.trim()
  const started = await startServing(t, env)
  const call = caller(started.api, token)
  await Promise.all(Array.from({ length: 8 }, () => call('GET', '/usage')))
  cluster.freeze()
  const began = performance.now()
  const answers = await Promise.all(['/workspace', '/tokens', '/usage'].map((path) => call('GET', path)))
  for (const { status } of answers) assert.equal(status, 503)
  assert.ok(performance.now() - began < 15_000, 'answered too late')
  cluster.thaw()
  await until('recovery', 5_000, async () => (await call('GET', '/workspace')).status === 200)
  cluster.freeze()
  const asked = performance.now()
  started.child.kill('SIGTERM')
  assert.equal((await started.ended).code, 0)
  assert.ok(performance.now() - asked < 20_000, 'waited for a database that does not answer')
  cluster.thaw()
})

test('a server that starts before its PostgreSQL waits for it and says so', async (t) => {
  const cluster = await createCluster()
  atEnd(t, () => cluster.remove())
  const env = { ADIT_DATABASE_URL: `${cluster.url}/postgres`, ADIT_PORT: '0', ADIT_SECRET: SECRET }
  const starting = startProcess(t, ['serve', '--json'], env)
  await starting.says(/waiting for the database/, 'stderr')
  await cluster.start()
  const { url, child, ended } = await serving(starting)
  assert.equal((await fetch(`${url}/readyz`)).status, 200)
  child.kill('SIGTERM')
  assert.equal((await ended).code, 0)
})
