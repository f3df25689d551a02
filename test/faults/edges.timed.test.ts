// A cluster under load, with three edges in one group and one in another, while one part after another fails.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { readUsage } from '../../src/server/domain/usage/read.ts'
import { operator } from '../support/api/server.ts'
import { createRandom } from '../support/random.ts'
import { checkUsage, checkVisits, countDisturbed, serviceMs } from './edges/check.ts'
import { deployEdges, type EdgeCluster, untilOpen } from './edges/deployment.ts'
import { type InjectedFault, injectFaults, takeIn } from './edges/injection.ts'
import { startVisitors } from './edges/visitors.ts'
import { createWorkers } from './scenario/workers.ts'

/**
 * How long faults are injected, with each database. Each type of fault occurs at least once, however long.
 */
const SECONDS = Number(process.env.FAULTS_SECONDS || 30)

async function readAllUsage({ services, workspaceIds }: EdgeCluster) {
  const usage = new Map<string, Awaited<ReturnType<typeof readUsage>>>()
  for (const [slug, workspaceId] of workspaceIds)
    usage.set(slug, await readUsage({ ...services, actor: operator, workspaceId }))
  return usage
}

async function runFaults(t: TestContext, cluster: EdgeCluster) {
  const seed = process.env.FAULTS_SEED ?? String(randomInt(2 ** 32))
  t.diagnostic(`FAULTS_SEED=${seed}`)
  const random = createRandom(seed)
  const ids = await untilOpen(cluster)
  for (const edge of cluster.edges) await takeIn(cluster, edge)
  const visitors = createWorkers()
  const visits = startVisitors(cluster, visitors, random.fork('visitors'))
  const faults: InjectedFault[] = []
  const onRecovered = async (fault: InjectedFault) => {
    faults.push(fault)
    const during = visits.filter(({ endMs, kind }) => kind === 'GET' && endMs > fault.startMs)
    const longest = Math.max(0, ...during.map((visit) => serviceMs(visit, faults)))
    const seconds = ((fault.endMs - fault.startMs) / 1_000).toFixed(1)
    t.diagnostic(
      `${fault.kind} (${fault.target}), ${seconds} s: ${during.length} GETs, the longest ${Math.round(longest)} ms`,
    )
    assert.deepEqual(await untilOpen(cluster), ids, 'the tunnels have the same ids as before the fault')
  }
  await injectFaults(cluster, random.fork('faults'), SECONDS, onRecovered)
  await visitors.stop()
  for (const edge of cluster.edges) await edge.end('SIGTERM')
  return { visits, faults }
}

for (const [engine, nodes] of [
  ['postgres', 2],
  ['sqlite', 1],
] as const)
  test(`${engine}: a GET gets the response of its own tunnel within a second after any fault`, async (t) => {
    const cluster = await deployEdges(t, engine, nodes)
    const { visits, faults } = await runFaults(t, cluster)
    const usage = await readAllUsage(cluster)
    t.diagnostic(`${countDisturbed(visits, faults)} slow GETs while the host took the processors`)
    const violations = [...checkVisits(visits, faults), ...checkUsage(usage, cluster, visits, faults)]
    assert.deepEqual(
      violations.slice(0, 30),
      [],
      `${violations.length} violations of ${visits.length} visits`,
    )
    assert.ok(visits.length > 500, `only ${visits.length} requests`)
  })
