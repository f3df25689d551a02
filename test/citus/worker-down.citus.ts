// A worker fails: everything except the usage that it stores goes on, and nothing that was reported is lost.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { addMember, openBrowser, signIn } from '../support/accounts/users.ts'
import { serveWithEdge } from '../support/api/server.ts'
import { counter } from '../support/api/usage.ts'
import type { Test } from '../support/cleanup.ts'
import { relayWorkers } from '../support/databases/citus.ts'
import { until } from '../support/until.ts'
import { addWorkspaces } from './workspaces.ts'

const NOW = Date.parse('2026-03-01T10:30:00.000Z')
const WORKSPACES = 16
/** Without a worker, requests that need none take as long as before. */
const CONTROL_MAX_MS = 3_000

/** A server with workspaces on two workers, each behind a relay. */
async function deploy(t: Test) {
  const relays = await relayWorkers(t)
  const { server, edge } = await serveWithEdge(t, { engine: 'postgres', clock: () => NOW })
  const { slugs, workspaces, readShards } = await addWorkspaces(server, WORKSPACES)
  const shards = await readShards()
  const [down] = relays
  assert.ok(down)
  const isOnDown = (index: number) => String(shards[index]?.worker) === down.port
  const lost = slugs.filter((_, index) => isOnDown(index))
  const kept = slugs.filter((_, index) => !isOnDown(index))
  assert.ok(lost.length > 0 && kept.length > 0)
  const keyOf = new Map(slugs.map((slug, index) => [slug, workspaces[index]?.key.token as string]))
  return {
    server,
    edge,
    down,
    lost,
    kept,
    report: async (slugs: string[], bytesIn: number) => {
      const counters = slugs.map((workspace) => counter({ workspace, bytesIn }))
      const { status, json } = await edge.report({ epoch: 'e', counters })
      if (status === 503) assert.equal(json.error, 'unavailable')
      return status
    },
    readUsage: async (slug: string) => {
      const key = keyOf.get(slug) as string
      const { status, json } = await server.call('GET', '/usage?days=1', { key })
      return status === 200 ? json.totalBytes : status
    },
  }
}

/** For all tests, so that no schema is dropped while a worker is down. */
const deployed = await deploy({ after: after as Test['after'] })

/** Creates, verifies and revokes keys, and signs in. */
async function useControlPlane(): Promise<number> {
  const { server, edge } = deployed
  const startedAt = performance.now()
  const { status, json } = await server.call('POST', '/tokens')
  assert.equal(status, 201)
  assert.equal((await edge.verify(json.token)).json.valid, true)
  assert.equal((await server.call('DELETE', `/tokens/${json.id}`)).status, 200)
  assert.equal((await edge.verify(json.token)).json.valid, false)
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  const ms = Math.round(performance.now() - startedAt)
  assert.ok(ms < CONTROL_MAX_MS, `took ${ms} ms`)
  return ms
}

for (const [how, fail, mend, base] of [
  ['rejects connections', 'cut', 'mend', 0],
  ['does not respond', 'hold', 'release', 100],
] as const)
  test(`a worker that ${how} stops only the usage that it stores, and that is not lost`, async (t) => {
    const { server, down, lost, kept, readUsage } = deployed
    const report = (slugs: string[], bytesIn: number) => deployed.report(slugs, base + bytesIn)
    const user = await addMember(server, `Ann-${base}`, 'owner')
    assert.equal(await report([...lost, ...kept], 10), 200)
    assert.equal(await readUsage(lost[0] as string), base + 10)
    down[fail]()

    const failed = await Promise.all([
      report(lost, 20),
      report([...lost, ...kept], 20),
      readUsage(lost[0] as string),
    ])
    assert.deepEqual(failed, [503, 503, 503])
    assert.equal(await report(kept, 30), 200)
    for (const slug of kept) assert.equal(await readUsage(slug), base + 30)
    // Many requests that need the worker must not occupy the connections that the others need.
    const pending = Array.from({ length: 40 }, (_, index) =>
      index % 2 === 0 ? report(lost, 40) : readUsage(lost[index % lost.length] as string),
    )
    const times = [await useControlPlane(), await useControlPlane()]
    assert.equal((await signIn(openBrowser(server.url), user.email)).status, 200)
    assert.equal(await report(kept, 50), 200)
    assert.deepEqual([...new Set(await Promise.all(pending))], [503])
    t.diagnostic(`create, verify, revoke and verify took ${times.join(' and ')} ms meanwhile`)

    down[mend]()
    await until('the worker is used again', async () => (await report(lost, 60)) === 200, 15_000)
    for (const slug of lost) assert.equal(await readUsage(slug), base + 60)
    for (const slug of kept) assert.equal(await readUsage(slug), base + 50)
  })

test('no response is 500 while connections to workers break at any moment', async (t) => {
  const { down, lost, kept, report, readUsage } = deployed
  const statuses = new Map<number, number>()
  const count = (status: number) => statuses.set(status, (statuses.get(status) ?? 0) + 1)
  let bytes = 1_000
  let isOver = false
  const work = Array.from({ length: 4 }, async (_, client) => {
    while (!isOver) {
      bytes += 1
      count(await report(client % 2 === 0 ? lost : [...lost, ...kept], bytes))
      const read = await readUsage(lost[client % lost.length] as string)
      count(read === 503 || read === 500 ? read : 200)
    }
  })
  for (let round = 0; round < 12; round++) {
    // Longer than a node waits before it uses the worker again.
    await sleep(1_050 + Math.random() * 400)
    down.cut()
    down.mend()
  }
  isOver = true
  await Promise.all(work)
  t.diagnostic([...statuses].map(([status, times]) => `${times} × ${status}`).join(', '))
  assert.deepEqual(
    [...statuses.keys()].filter((status) => status !== 200 && status !== 503),
    [],
  )
  assert.equal(statuses.size, 2, 'some succeeded and some failed')
  await until(
    'reports are accepted',
    async () => (await report([...lost, ...kept], bytes + 1)) === 200,
    10_000,
  )
  for (const slug of [...lost, ...kept]) assert.equal(await readUsage(slug), bytes + 1)
})
