// Quotas as edges enforce them with the SDK: when they stop carrying traffic, and when they continue.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createControlPlane, startMeter, startVerifier } from '../../src/edge-sdk/index.ts'
import { UsageQuotas } from '../../src/edge-sdk/usage/quotas.ts'
import { createEdge } from '../../src/server/domain/tunnels/edges.ts'
import { readQuotasBySlug, setQuotas } from '../../src/server/domain/workspaces/quotas.ts'
import { addNode, operator, serve, type TestServer } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder, engines } from '../support/databases/create.ts'
import { until } from '../support/until.ts'

/**
 * The guarantee: all edges stop this soon after a limit is reached, and continue this soon after it is
 * raised.
 */
const REACTION_MS = 10_000
/** Not a divisor of the limit. */
const STEP_BYTES = 3_999_999

/** Carries as much as it may, like an edge at full speed. */
async function startBusyEdge(t: Test, server: TestServer, url: string, name: string) {
  const { token: credential } = await createEdge(server.services, operator, name)
  const controlPlane = createControlPlane({ url, credential })
  const meter = await startMeter(controlPlane, { folder: createFolder(t) })
  const verifier = startVerifier(controlPlane, { onQuota: meter.setQuota })
  const edge = { carried: 0, lastAt: 0, rejected: 0, isStopped: false, meter }
  const result = await verifier.verify(server.key.token)
  assert.equal(result.valid, true)
  const carry = async () => {
    while (!edge.isStopped) {
      if (verifier.quotaReachedUntil('acme') === undefined) {
        meter.transferred('acme', { requests: 1, bytesIn: STEP_BYTES - 1, bytesOut: 1 })
        edge.carried += STEP_BYTES
        edge.lastAt = performance.now()
      } else edge.rejected += 1
      await sleep(20)
    }
  }
  const carrying = carry()
  atEnd(t, async () => {
    edge.isStopped = true
    await carrying
    verifier.close()
    await meter.stop()
  })
  return edge
}

for (const engine of engines)
  test(`${engine}: 3 edges at two nodes stop within 10 seconds of the limit, and the count is exact`, async (t) => {
    const server = await serve(t, { engine })
    const node = await addNode(t, server)
    const limit = 500_000_000
    await setQuotas(server.services, operator, 'acme', { bytes: limit })
    const urls = [server.url, node.url, node.url]
    const edges = await Promise.all(urls.map((url, index) => startBusyEdge(t, server, url, `edge-${index}`)))
    const carried = () => edges.reduce((sum, edge) => sum + edge.carried, 0)
    await until('the limit', () => carried() >= limit)
    const reachedAt = performance.now()
    assert.ok(
      edges.every(({ rejected }) => rejected === 0),
      'nothing is rejected below the limit',
    )
    await until('all edges stop', () => edges.every(({ rejected }) => rejected > 0), REACTION_MS)
    const stopped = carried()
    const lastAt = Math.max(...edges.map((edge) => edge.lastAt))
    t.diagnostic(`stopped ${Math.round(lastAt - reachedAt)} ms after the limit`)

    const used = async () => (await readQuotasBySlug(server.services, 'acme')).quotas[0]?.used
    await until('everything is counted', async () => (await used()) === BigInt(stopped))
    assert.equal(carried(), stopped)
    await setQuotas(server.services, operator, 'acme', { bytes: 100 * limit })
    const openedAfter = await until(
      'edges carry again',
      () => edges.every(({ lastAt: at }) => at > lastAt),
      REACTION_MS,
    )
    t.diagnostic(`open again ${Math.round(openedAfter)} ms after the quota was raised`)
  })

test('usage is urgent near a quota, or if a share of the quota is unreported', () => {
  const quotas = new UsageQuotas(2)
  const now = Date.parse('2026-11-16T12:00:00.000Z')
  const month = '2026-12-01T00:00:00.000Z'
  const unreported = (bytes: number, sinceMs: number) => ({ bytes, requests: 1, sinceMs })
  assert.equal(quotas.isUrgent('acme', unreported(1e9, 1e9), now), false, 'no quota')
  quotas.set('acme', { revision: 1, reportBytes: 100 })
  assert.equal(quotas.isUrgent('acme', unreported(99, 60_000), now), false)
  assert.equal(quotas.isUrgent('acme', unreported(100, 4_000), now), false)
  assert.equal(quotas.isUrgent('acme', unreported(100, 5_000), now), true)
  quotas.set('acme', { revision: 2, reportBytes: 100, level: 'near', until: month })
  assert.equal(quotas.isUrgent('acme', unreported(1, 1_000), now), false)
  assert.equal(quotas.isUrgent('acme', unreported(1, 2_000), now), true)
  assert.equal(quotas.isUrgent('acme', unreported(1, 2_000), Date.parse(month)), false)
  assert.equal(quotas.reachedUntil('acme', now), undefined)
  quotas.set('acme', { revision: 3, level: 'reached', until: month })
  assert.equal(quotas.set('acme', { revision: 2 }), false, 'from a node that lags behind')
  assert.equal(quotas.reachedUntil('acme', now), Date.parse(month))
  assert.equal(quotas.reachedUntil('acme', Date.parse(month)), undefined)
  quotas.set('b', { revision: 0 })
  quotas.set('c', { revision: 0 })
  assert.equal(quotas.reachedUntil('acme', now), undefined, 'the oldest is dropped')
})

test('between reports, only usage near a quota is reported early', async (t) => {
  const reports: string[][] = []
  const controlPlane = createControlPlane({ url: 'http://127.0.0.1:1', credential: 'adit_edge_x' })
  const meter = await startMeter(
    {
      ...controlPlane,
      report: async ({ counters = [] }) => {
        reports.push(counters.map(({ workspace }) => workspace))
        return { accepted: counters.length, rejected: [] }
      },
    },
    { folder: createFolder(t), reportEveryMs: 300_000 },
  )
  atEnd(t, () => meter.stop())
  meter.setQuota('near', { revision: 1, level: 'near', until: '2999-01-01T00:00:00.000Z' })
  meter.transferred('near', { bytesIn: 1 })
  meter.transferred('far', { bytesIn: 1 })
  await until('a report', () => reports.length > 0, REACTION_MS)
  // The report at the start may include both.
  const before = reports.length
  meter.transferred('near', { bytesIn: 1 })
  meter.transferred('far', { bytesIn: 1 })
  await until('an early report', () => reports.length > before, REACTION_MS)
  assert.deepEqual(reports.slice(before), [['near']])
})
