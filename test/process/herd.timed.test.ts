// Thousands of clients reconnect at once after their edge was killed and restarted. HERD_TUNNELS sets their
// number; each 10,000 have an edge.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createLog } from '../../src/lib/log.ts'
import { readConfig } from '../../src/server/config/server.ts'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { createEdge } from '../../src/server/domain/tunnels/edges.ts'
import { createWorkspace } from '../../src/server/domain/workspaces/manage.ts'
import { openServices } from '../../src/server/services.ts'
import { operator } from '../support/api/server.ts'
import { atEnd } from '../support/cleanup.ts'
import { createMigratedDatabase, engines } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import type { HerdOptions } from '../support/edges/herd-clients.ts'
import { startTunnelEdge } from '../support/edges/tunnels.ts'
import { describeLatency, measureLatency } from '../support/network/latency.ts'
import { startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const WORKSPACES = 50
const KEYS_PER_WORKSPACE = 10
const TUNNELS = Number(process.env.HERD_TUNNELS ?? 5_000)
const TUNNELS_PER_EDGE = 10_000
const EDGES = Math.ceil(TUNNELS / TUNNELS_PER_EDGE)
const OPENED_WITHIN_MS = 240_000
/** Most of this time is taken by the test: all clients of an edge share one process. */
const BACK_WITHIN_MS = Math.max(15_000, TUNNELS * 3)
const P99_MAX_MS = 300

const program = fileURLToPath(new URL('../support/edges/herd-clients.ts', import.meta.url))

for (const engine of engines)
  test(`${engine}: ${TUNNELS} tunnels reopen within ${BACK_WITHIN_MS / 1_000} seconds of a restart, and requests stay fast`, async (t) => {
    const database = await createMigratedDatabase(t, engine)
    const { keys, edgeKeys } = await populate(database)
    const node = await startServing(t, {
      ADIT_DATABASE_URL: database,
      ADIT_SECRET: SECRET,
      ADIT_LOG_LEVEL: 'silent',
    })
    const edges = await Promise.all(edgeKeys.map((edgeKey) => startEdge(t, node.url, edgeKey)))
    const herds = edges.map(({ url }, index) =>
      startHerd(t, { edge: url, keys, count: TUNNELS / EDGES, prefix: `app-${index}` }),
    )
    /** How often tunnels were opened, since the start of the test. */
    const openings = () => herds.reduce((sum, herd) => sum + herd.openings(), 0)
    await until('all tunnels are open', () => openings() === TUNNELS, OPENED_WITHIN_MS)
    for (const { child } of edges) child.kill('SIGKILL')
    await Promise.all(edges.map(({ ended }) => ended))
    const startedAt = performance.now()
    await Promise.all(edges.map((edge) => edge.restart()))
    let backMs = 0
    const latency = await measureLatency(
      t,
      [{ url: `${node.url}/api/v1/workspace`, key: keys[0] as string }],
      async () => {
        await until('all tunnels are open again', () => openings() === 2 * TUNNELS, OPENED_WITHIN_MS)
        backMs = performance.now() - startedAt
      },
    )
    t.diagnostic(`back after ${Math.round(backMs)} ms; requests meanwhile: ${describeLatency(latency)}`)
    for (const { failures } of herds) assert.deepEqual(failures, [])
    assert.ok(backMs < BACK_WITHIN_MS, `the tunnels were open again after ${backMs} ms`)
    assert.ok(latency.p99 < P99_MAX_MS, describeLatency(latency))
  })

const startEdge = (t: TestContext, url: string, edgeKey: string) =>
  startTunnelEdge(t, {
    env: {
      ADIT_URL: url,
      ADIT_EDGE_KEY: edgeKey,
      ADIT_LOG_LEVEL: 'warn',
      // All clients here have the same address. Without this, an edge accepts 500 connections from it.
      ADIT_TRUSTED_PROXIES: '127.0.0.1',
    },
  })

async function populate(database: string): Promise<{ keys: string[]; edgeKeys: string[] }> {
  const config = readConfig({ ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET })
  const services = await openServices(config, createLog('silent'), 10_000)
  const keys: string[] = []
  for (let index = 0; index < WORKSPACES; index++) {
    const slug = `herd-${index}`
    const workspace = await createWorkspace(services, operator, { slug, name: slug, provisioned: true })
    for (let key = 0; key < KEYS_PER_WORKSPACE; key++) {
      const created = await createKey(
        { ...services, actor: operator, workspaceId: workspace.id },
        { label: `key ${key}` },
      )
      keys.push(created.token)
    }
  }
  const edgeKeys: string[] = []
  for (let index = 1; index <= EDGES; index++)
    edgeKeys.push((await createEdge(services, operator, `fra-${index}`)).token)
  await services.store.close()
  return { keys, edgeKeys }
}

function startHerd(t: TestContext, options: HerdOptions) {
  const child = fork(program, { execArgv: [] })
  child.send(options)
  atEnd(t, () => void child.kill('SIGKILL'))
  const failures: string[] = []
  let openings = 0
  child.on('message', (message: { openings: number } | { failed: string }) => {
    if ('failed' in message) failures.push(message.failed)
    else openings = message.openings
  })
  return { openings: () => openings, failures }
}
