// Three real nodes on one PostgreSQL, and how long a revocation waits for them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEASE_MS } from '../../../src/server/verification/lease.ts'
import { caller } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { run, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

async function startThree(t: Test) {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'postgres'), ADIT_LOG_LEVEL: 'silent' }
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const token = (await run(t, ['admin', 'key', 'create', '--workspace', 'acme'], env)).stdout.trim()
  const nodes = await Promise.all([1, 2, 3].map(() => startServing(t, env)))
  const calls = nodes.map(({ api }) => caller(api, token))
  const first = calls[0] as (typeof calls)[number]
  return {
    nodes,
    calls,
    first,
    listNodes: async (): Promise<{ id: string; behind: number; lease: string; pid: number }[]> =>
      JSON.parse((await run(t, ['admin', 'nodes', '--json'], env)).stdout),
    /** A new key that every node has cached. */
    async createKey() {
      const { status, text, json: key } = await first('POST', '/tokens')
      assert.equal(status, 201, text)
      for (const call of calls)
        assert.equal((await call('GET', '/workspace', { key: key.token })).status, 200)
      return key as { id: string; token: string }
    },
    /** Revokes at the first node and returns how long that took. */
    async revoke(id: string) {
      const startedAt = performance.now()
      assert.equal((await first('DELETE', `/tokens/${id}`)).status, 200)
      return performance.now() - startedAt
    },
  }
}

/** Nodes are notified: with polling alone the slowest of three would take 190 ms at the median. */
const MEDIAN_MAX_MS = 125
/** Other processes can disturb a round; with polling alone every round is too slow. */
const ROUNDS = 10

test('with three nodes a revocation is acknowledged soon, and then no node accepts the key', async (t) => {
  const { calls, createKey, revoke } = await startThree(t)
  async function medianMs(): Promise<number> {
    const times: number[] = []
    for (let each = 0; each < 20; each++) {
      const key = await createKey()
      times.push(await revoke(key.id))
      const responses = await Promise.all(calls.map((call) => call('GET', '/workspace', { key: key.token })))
      assert.deepEqual(pluck(responses, 'status'), [401, 401, 401])
    }
    return Math.round(times.sort((a, b) => a - b)[10] as number)
  }
  const medians = [await medianMs()]
  while ((medians.at(-1) as number) >= MEDIAN_MAX_MS && medians.length < ROUNDS)
    medians.push(await medianMs())
  t.diagnostic(`medians of ${medians} ms`)
  assert.ok((medians.at(-1) as number) < MEDIAN_MAX_MS, `medians of ${medians} ms`)
})

test('a revocation waits once for a hung node, for a lease; the node then rejects cached keys', async (t) => {
  const { nodes, calls, listNodes, createKey, revoke } = await startThree(t)
  const [key, next] = [await createKey(), await createKey()]
  const { child } = nodes[2] as (typeof nodes)[number]
  child.kill('SIGSTOP')
  const waited = await revoke(key.id)
  t.diagnostic(`waited ${Math.round(waited)} ms for a hung node`)
  assert.ok(waited > LEASE_MS && waited < 2 * LEASE_MS, `waited ${waited} ms, not once`)
  const again = await revoke(next.id)
  assert.ok(again < LEASE_MS, `waited ${again} ms for it again`)
  assert.equal((await listNodes()).length, 2)
  // Sent after the acknowledgement: they are in its socket when it resumes with both keys in its cache.
  const requests = [key, next, key].map(({ token }) => calls[2]?.('GET', '/workspace', { key: token }))
  await new Promise((resolve) => setTimeout(resolve, 200))
  child.kill('SIGCONT')
  for (const response of await Promise.all(requests)) assert.equal(response?.status, 401)
  await until('it is registered again', async () => (await listNodes()).length === 3)
})

test('a node that stops gives up its lease; a revocation waits once for a killed node', async (t) => {
  const { nodes, listNodes, createKey, revoke } = await startThree(t)
  const [keyOfStop, keyOfKill, last] = [await createKey(), await createKey(), await createKey()]
  const [, stops, dies] = nodes as [unknown, (typeof nodes)[number], (typeof nodes)[number]]
  await stops.stop()
  assert.ok((await revoke(keyOfStop.id)) < LEASE_MS)
  await dies.stop('SIGKILL')
  assert.deepEqual((await listNodes()).map(({ pid }) => pid).includes(dies.child.pid as number), true)
  const waited = await revoke(keyOfKill.id)
  assert.ok(waited > LEASE_MS && waited < 2 * LEASE_MS, `waited ${waited} ms, not once`)
  assert.ok((await revoke(last.id)) < LEASE_MS)
  const [only, ...others] = await listNodes()
  assert.deepEqual(others, [])
  assert.deepEqual([only?.behind, only?.lease], [0, 'held'])
})
