// Three nodes on a real cluster while nodes, their links and the connections to workers fail: no key is
// accepted after its revocation was acknowledged, and usage is exact. CITUS_SECONDS sets the length.
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Deployment, names, seed } from '../faults/deployments.ts'
import { type FaultSchedule, linkFaults, nodeFaults } from '../faults/injection.ts'
import { startNode } from '../faults/nodes.ts'
import { assertNoViolations } from '../faults/run.ts'
import type { Test } from '../support/cleanup.ts'
import { createDistributedSchema, relayWorkers } from '../support/databases/citus.ts'
import { type Relay, startRelay } from '../support/network/relay.ts'

const SECONDS = Number(process.env.CITUS_SECONDS || 40)
const NODES = 3

async function deployOnCitus(t: Test): Promise<Deployment> {
  const database = await createDistributedSchema(t)
  const workers = await relayWorkers(t)
  const seeded = await seed(database)
  const links = await Promise.all(
    names(NODES).map(async (name) => {
      const relayed = new URL(database)
      const relay = await startRelay(t, `http://${relayed.host}`)
      relayed.port = relay.port
      return { relay, node: await startNode(t, name, { ADIT_DATABASE_URL: relayed.href }) }
    }),
  )
  const nodes = links.map(({ node }) => node)
  const schedules = [nodeFaults(nodes), linkFaults(links), workerFaults(workers)]
  return { ...seeded, nodes, database, schedules }
}

function workerFaults(workers: readonly Relay[]): FaultSchedule {
  const fault = (kind: string, apply: (worker: Relay) => Promise<void>) => ({
    kind,
    inject: (random: { pick<T>(items: readonly T[]): T }) => ({ done: apply(random.pick(workers)) }),
  })
  const types = [
    fault('connections to a worker closed', async (worker) => {
      worker.cut()
      worker.mend()
    }),
    fault('worker down', async (worker) => {
      worker.cut()
      await sleep(2_000)
      worker.mend()
    }),
    fault('worker stalled', async (worker) => {
      worker.hold()
      await sleep(2_000)
      worker.release()
    }),
  ]
  return { types, gap: [1_000, 4_000] }
}

test('three nodes keep every guarantee while nodes, links and workers fail', async (t) => {
  await assertNoViolations(t, await deployOnCitus(t), { seconds: SECONDS })
})
