// `adit admin usage`: real processes beside a running server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caller, presentKey } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createMigratedDatabase, type Engine, engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { run, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const today = () => new Date().toISOString().slice(0, 10)

async function setUp(t: Test, engine: Engine) {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine), ADIT_LOG_LEVEL: 'silent' }
  const json = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
  await json('admin', 'workspace', 'create', 'acme')
  const key = await json('admin', 'key', 'create', '--workspace', 'acme')
  const [good, bad] = [
    await json('admin', 'edge', 'create', 'good'),
    await json('admin', 'edge', 'create', 'bad'),
  ]
  const { api, url } = await startServing(t, env)
  for (const edge of [good, bad]) await presentKey(url, edge.token, key.token)
  const day = today()
  const report = (edge: { token: string }, epoch: string, bytesIn: number, open: number, day = today()) =>
    caller(`${url}/edge/v1`, edge.token)('POST', '/usage', {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        epoch,
        counters: [
          {
            workspace: 'acme',
            day,
            requests: 1,
            bytesIn,
            bytesOut: 0,
            events: 2,
            lastSeen: `${day}T00:00:00.000Z`,
          },
        ],
        tunnels: [{ workspace: 'acme', minute: `${day}T00:00:00.000Z`, open }],
      }),
    })
  const usage = async () => (await caller(api, key.token)('GET', '/usage?days=1')).json
  const figures = async () => {
    const { totalBytes, eventCount, peakTunnels } = await usage()
    return { totalBytes, eventCount, peakTunnels }
  }
  const verify = async (edge: { token: string }) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ key: key.token })
    return (await caller(`${url}/edge/v1`, edge.token)('POST', '/keys/verify', { headers, body })).json
  }
  return { env, json, good, bad, day, report, figures, verify }
}

for (const engine of engines) {
  test(`${engine}: resetting a day of an edge deletes only its counters, with an audit row`, async (t) => {
    const { env, json, good, bad, day, report, figures } = await setUp(t, engine)
    const absurd = 1_000_000_000_000_000
    await report(good, 'g1', 5, 2)
    await report(bad, 'b1', absurd, 900_000)
    await report(bad, 'b2', 7, 1)
    assert.deepEqual(await figures(), { totalBytes: absurd + 12, eventCount: 6, peakTunnels: 1_002 })

    const shown = await json('admin', 'usage', 'show', 'acme', '--day', day)
    assert.deepEqual(pluck(shown, 'edge', 'name', 'epoch', 'bytesIn'), [
      [bad.id, 'bad', 'b1', absurd],
      [bad.id, 'bad', 'b2', 7],
      [good.id, 'good', 'g1', 5],
    ])
    const [total] = await json('admin', 'usage', 'show', 'acme')
    assert.deepEqual([total.day, total.bytesIn], [day, absurd + 12])
    const text = (await run(t, ['admin', 'usage', 'show', 'acme', '--day', day], env)).stdout
    assert.match(text, /^EDGE +NAME +EPOCH +REQUESTS/)

    const reset = await run(t, ['admin', 'usage', 'reset', 'acme', '--day', day, '--edge', bad.id], env)
    assert.equal(reset.code, 0, reset.stderr)
    assert.match(reset.stderr, new RegExp(`adit admin edge revoke ${bad.id}`))
    assert.deepEqual(await figures(), { totalBytes: 5, eventCount: 2, peakTunnels: 2 })
    // Totals are cumulative within an epoch: the next report of the good edge counts once, not twice.
    await report(good, 'g1', 9, 3)
    assert.deepEqual(await figures(), { totalBytes: 9, eventCount: 2, peakTunnels: 3 })

    await json('admin', 'edge', 'revoke', bad.id)
    assert.equal((await report(bad, 'b1', absurd, 1)).status, 401)
    const again = await run(
      t,
      ['admin', 'usage', 'reset', 'acme', '--day', day, '--edge', bad.id, '--json'],
      env,
    )
    assert.equal(again.code, 1)
    assert.equal(JSON.parse(again.stderr).error, 'not_found')
    const { rows } = await audit(env)
    assert.deepEqual(
      pluck(
        rows.filter((row) => row.action === 'usage.reset'),
        'target_id',
        'target_name',
      ),
      [[day, `${day} of edge bad`]],
    )
  })

  test(`${engine}: revoking an edge can reset its usage of all workspaces and days, and lifts quotas`, async (t) => {
    const { env, json, good, bad, day, report, figures, verify } = await setUp(t, engine)
    await json('admin', 'workspace', 'quota', 'acme', '--bytes', '1000')
    const earlier = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10)
    await report(good, 'g1', 5, 2)
    await report(bad, 'b1', 5_000, 3, earlier)
    await report(bad, 'b2', 7_000, 3)
    await until('the quota is reached', async () => (await verify(good)).workspace.quota.level === 'reached')
    const unconfirmed = await run(t, ['admin', 'edge', 'revoke', bad.id, '--reset-usage'], env)
    assert.equal(unconfirmed.code, 2)
    assert.match(unconfirmed.stderr, /2 requests and 12000 bytes, on 2 days of 1 workspaces/)
    for (let round = 0; round < 2; round++)
      assert.deepEqual(await json('admin', 'edge', 'revoke', bad.id, '--reset-usage', '--yes'), {
        id: bad.id,
        revoked: true,
        usage: round === 0 ? { workspaces: 1, days: 2 } : { workspaces: 0, days: 0 },
      })
    assert.deepEqual(await figures(), { totalBytes: 5, eventCount: 2, peakTunnels: 2 })
    const days = await json('admin', 'usage', 'show', 'acme')
    assert.deepEqual(pluck(days, 'day', 'bytesIn'), [
      [day, 5],
      [earlier, 0],
    ])
    await until('it is not reached any more', async () => !(await verify(good)).workspace.quota.level)
    const { rows } = await audit(env)
    assert.deepEqual(
      pluck(
        rows.filter((row) => row.action === 'usage.reset'),
        'target_id',
        'target_name',
      ),
      [[bad.id, '2 days of edge bad']],
    )
  })

  test(`${engine}: resetting a day deletes all of it, and a running epoch continues`, async (t) => {
    const { env, json, good, day, report, figures } = await setUp(t, engine)
    await report(good, 'g1', 5, 2)
    assert.deepEqual(await json('admin', 'usage', 'reset', 'acme', '--day', day), {
      workspace: 'acme',
      day,
      counters: 1,
      minutes: 1,
    })
    assert.deepEqual(await figures(), { totalBytes: 0, eventCount: 0, peakTunnels: 0 })
    await report(good, 'g1', 6, 1)
    assert.deepEqual(await figures(), { totalBytes: 6, eventCount: 2, peakTunnels: 1 })
    for (const wrong of ['2026-02-30', 'yesterday'])
      assert.equal((await run(t, ['admin', 'usage', 'reset', 'acme', '--day', wrong], env)).code, 2, wrong)
    assert.equal((await run(t, ['admin', 'usage', 'show', 'missing'], env)).code, 1)
  })
}

async function audit(env: Record<string, string>) {
  const { openServices } = await import('../../../src/server/services.ts')
  const { readConfig } = await import('../../../src/server/config/server.ts')
  const { createLog } = await import('../../../src/lib/log.ts')
  const services = await openServices(readConfig(env), createLog('silent'), 1_000)
  const rows = await services.store.db.selectFrom('audit_log').selectAll().orderBy('id').execute()
  await services.store.close()
  return { rows }
}
