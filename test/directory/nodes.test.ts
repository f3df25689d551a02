// Three real nodes on one PostgreSQL, and the wait of a revocation for them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LEASE_MS } from '../../src/domain/propagation.ts'
import type { Test } from '../support/cleanup.ts'
import { createDatabase } from '../support/databases.ts'
import { run, startServing } from '../support/process.ts'
import { caller } from '../support/server.ts'
import { until } from '../support/until.ts'

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
    listed: async (): Promise<{ id: string; behind: number; lease: string; pid: number }[]> =>
      JSON.parse((await run(t, ['admin', 'nodes', '--json'], env)).stdout),
    /** A new key that every node has met. */
    async mint() {
      const key = (await first('POST', '/tokens')).json
      for (const call of calls)
        assert.equal((await call('GET', '/workspace', { key: key.token })).status, 200)
      return key as { id: string; token: string }
    },
    /** Revokes it at the first node, and tells how long that took. */
    async revoke(id: string) {
      const began = performance.now()
      assert.equal((await first('DELETE', `/tokens/${id}`)).status, 200)
      return performance.now() - began
    },
  }
}

test('with three nodes a revocation is acknowledged soon, and then no node takes the key', async (t) => {
  const { calls, mint, revoke } = await startThree(t)
  const times: number[] = []
  for (let round = 0; round < 20; round++) {
    const key = await mint()
    times.push(await revoke(key.id))
    const answers = await Promise.all(calls.map((call) => call('GET', '/workspace', { key: key.token })))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401, 401, 401],
    )
  }
  times.sort((a, b) => a - b)
  t.diagnostic(
    `median ${Math.round(times[10] as number)} ms, slowest ${Math.round(times.at(-1) as number)} ms`,
  )
  // The nodes are woken: were the three only to poll, the last of them would come after 190 ms in the middle.
  assert.ok((times[10] as number) < 125, `the median was ${times[10]} ms`)
})

test('a node that hangs is waited for, for a lease and once; then it refuses what it had known to be good', async (t) => {
  const { nodes, calls, listed, mint, revoke } = await startThree(t)
  const [key, next] = [await mint(), await mint()]
  const { child } = nodes[2] as (typeof nodes)[number]
  child.kill('SIGSTOP')
  const waited = await revoke(key.id)
  t.diagnostic(`waited ${Math.round(waited)} ms for a node that hangs`)
  assert.ok(waited < LEASE_MS + 500, `waited ${waited} ms`)
  const again = await revoke(next.id)
  assert.ok(again < LEASE_MS / 2, `waited ${again} ms for it again`)
  assert.equal((await listed()).length, 2)
  // They lie in its socket, sent after the acknowledgement, when it wakes up with both keys in its memory.
  const asked = [key, next, key].map(({ token }) => calls[2]?.('GET', '/workspace', { key: token }))
  await new Promise((resolve) => setTimeout(resolve, 200))
  child.kill('SIGCONT')
  for (const answer of await Promise.all(asked)) assert.equal(answer?.status, 401)
  await until('it is back among the nodes', async () => (await listed()).length === 3)
})

test('a node that stops hands its lease back; one that is killed is waited for once', async (t) => {
  const { nodes, listed, mint, revoke } = await startThree(t)
  const [keyOfStop, keyOfKill, last] = [await mint(), await mint(), await mint()]
  const [, stops, dies] = nodes as [unknown, (typeof nodes)[number], (typeof nodes)[number]]
  stops.child.kill('SIGTERM')
  await stops.ended
  assert.ok((await revoke(keyOfStop.id)) < LEASE_MS / 2)
  dies.child.kill('SIGKILL')
  await dies.ended
  assert.deepEqual((await listed()).map(({ pid }) => pid).includes(dies.child.pid as number), true)
  const waited = await revoke(keyOfKill.id)
  assert.ok(waited < LEASE_MS + 500, `waited ${waited} ms`)
  assert.ok((await revoke(last.id)) < LEASE_MS / 2)
  const [only, ...others] = await listed()
  assert.deepEqual(others, [])
  assert.deepEqual([only?.behind, only?.lease], [0, 'held'])
})
