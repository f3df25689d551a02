// `adit admin usage`: real processes beside a running server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caller, presentKey } from '../../support/api/server.ts'
import { counter, today } from '../../support/api/usage.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { assertFailed, createOperator } from '../../support/processes/commands.ts'
import { startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

async function setUp(t: Test, engine: Engine) {
  const { env, adit, json } = await createOperator(t, engine)
  await json('workspace', 'create', 'acme')
  const key = await json('key', 'create', '--workspace', 'acme')
  const [good, bad] = [await json('edge', 'create', 'good'), await json('edge', 'create', 'bad')]
  const { api, url } = await startServing(t, env)
  const post = (edge: { token: string }, path: string, json: unknown) =>
    caller(`${url}/edge/v1`, edge.token)('POST', path, { json })
  for (const edge of [good, bad]) await presentKey(url, edge.token, key.token)
  const day = today()
  const report = (edge: { token: string }, epoch: string, bytesIn: number, open: number, on = day) => {
    const minute = `${on}T00:00:00.000Z`
    const counters = [counter({ day: on, requests: 1, bytesIn, events: 2, lastSeen: minute })]
    return post(edge, '/usage', { epoch, counters, tunnels: [{ workspace: 'acme', minute, open }] })
  }
  const figures = async () => {
    const { json } = await caller(api, key.token)('GET', '/usage?days=1')
    const { totalBytes, eventCount, peakTunnels } = json
    return { totalBytes, eventCount, peakTunnels }
  }
  const verify = async (edge: { token: string }) =>
    (await post(edge, '/keys/verify', { key: key.token })).json
  /** What resets are in the audit log. */
  const resets = async () => {
    const { stdout } = await adit('audit', 'export')
    const entries = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const targets = entries.filter(({ action }) => action === 'usage.reset').map(({ target }) => target)
    return pluck(targets, 'id', 'name')
  }
  return { adit, json, good, bad, day, report, figures, verify, resets }
}

for (const engine of engines) {
  test(`${engine}: resetting a day of an edge deletes only its counters, with an audit row`, async (t) => {
    const { adit, json, good, bad, day, report, figures, resets } = await setUp(t, engine)
    const absurd = 1_000_000_000_000_000
    await report(good, 'g1', 5, 2)
    await report(bad, 'b1', absurd, 900_000)
    await report(bad, 'b2', 7, 1)
    assert.deepEqual(await figures(), { totalBytes: absurd + 12, eventCount: 6, peakTunnels: 1_002 })

    const shown = await json('usage', 'show', 'acme', '--day', day)
    assert.deepEqual(pluck(shown, 'edge', 'name', 'epoch', 'bytesIn'), [
      [bad.id, 'bad', 'b1', absurd],
      [bad.id, 'bad', 'b2', 7],
      [good.id, 'good', 'g1', 5],
    ])
    const [total] = await json('usage', 'show', 'acme')
    assert.deepEqual([total.day, total.bytesIn], [day, absurd + 12])
    const text = (await adit('usage', 'show', 'acme', '--day', day)).stdout
    assert.match(text, /^EDGE +NAME +EPOCH +REQUESTS/)

    const reset = await adit('usage', 'reset', 'acme', '--day', day, '--edge', bad.id)
    assert.equal(reset.code, 0, reset.stderr)
    assert.match(reset.stderr, new RegExp(`adit admin edge revoke ${bad.id}`))
    assert.deepEqual(await figures(), { totalBytes: 5, eventCount: 2, peakTunnels: 2 })
    // Totals are cumulative within an epoch: the next report of the good edge counts once, not twice.
    await report(good, 'g1', 9, 3)
    assert.deepEqual(await figures(), { totalBytes: 9, eventCount: 2, peakTunnels: 3 })

    await json('edge', 'revoke', bad.id)
    assert.equal((await report(bad, 'b1', absurd, 1)).status, 401)
    const again = await adit('usage', 'reset', 'acme', '--day', day, '--edge', bad.id, '--json')
    assert.equal(again.code, 1)
    assert.equal(JSON.parse(again.stderr).error, 'not_found')
    assert.deepEqual(await resets(), [[day, `${day} of edge bad`]])
  })

  test(`${engine}: revoking an edge can reset its usage of all workspaces and days, and lifts quotas`, async (t) => {
    const { adit, json, good, bad, day, report, figures, verify, resets } = await setUp(t, engine)
    await json('workspace', 'quota', 'acme', '--bytes', '1000')
    const earlier = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10)
    await report(good, 'g1', 5, 2)
    await report(bad, 'b1', 5_000, 3, earlier)
    await report(bad, 'b2', 7_000, 3)
    await until('the quota is reached', async () => (await verify(good)).workspace.quota.level === 'reached')
    const unconfirmed = await adit('edge', 'revoke', bad.id, '--reset-usage')
    assertFailed(unconfirmed, 2, /2 requests and 12000 bytes, on 2 days of 1 workspaces/)
    for (let round = 0; round < 2; round++)
      assert.deepEqual(await json('edge', 'revoke', bad.id, '--reset-usage', '--yes'), {
        id: bad.id,
        revoked: true,
        usage: round === 0 ? { workspaces: 1, days: 2 } : { workspaces: 0, days: 0 },
      })
    assert.deepEqual(await figures(), { totalBytes: 5, eventCount: 2, peakTunnels: 2 })
    const days = await json('usage', 'show', 'acme')
    assert.deepEqual(pluck(days, 'day', 'bytesIn'), [
      [day, 5],
      [earlier, 0],
    ])
    await until('it is not reached any more', async () => !(await verify(good)).workspace.quota.level)
    assert.deepEqual(await resets(), [[bad.id, '2 days of edge bad']])
  })

  test(`${engine}: resetting a day deletes all of it, and a running epoch continues`, async (t) => {
    const { adit, json, good, day, report, figures } = await setUp(t, engine)
    await report(good, 'g1', 5, 2)
    assert.deepEqual(await json('usage', 'reset', 'acme', '--day', day), {
      workspace: 'acme',
      day,
      counters: 1,
      minutes: 1,
    })
    assert.deepEqual(await figures(), { totalBytes: 0, eventCount: 0, peakTunnels: 0 })
    await report(good, 'g1', 6, 1)
    assert.deepEqual(await figures(), { totalBytes: 6, eventCount: 2, peakTunnels: 1 })
    for (const wrong of ['2026-02-30', 'yesterday'])
      assert.equal((await adit('usage', 'reset', 'acme', '--day', wrong)).code, 2, wrong)
    assert.equal((await adit('usage', 'show', 'missing')).code, 1)
  })
}
