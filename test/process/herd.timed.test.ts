// All clients of an edge connect again at once after it was restarted.
// HERD_TUNNELS sets their number, with an edge for each 10,000.
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
/** All clients of an edge share a process here, which takes most of the time. */
const TUNNELS = Number(process.env.HERD_TUNNELS ?? 5_000)
const TUNNELS_PER_EDGE = 10_000
const EDGES = Math.ceil(TUNNELS / TUNNELS_PER_EDGE)
const OPENED_WITHIN_MS = 240_000
/** 15 seconds for 5,000 tunnels, 60 for 20,000. */
const BACK_WITHIN_MS = Math.max(15_000, TUNNELS * 3)
const P99_MAX_MS = 300

const program = fileURLToPath(new URL('../support/edges/herd-clients.ts', import.meta.url))

for (const engine of engines)
  test(`${engine}: ${TUNNELS} tunnels are back ${BACK_WITHIN_MS / 1_000} seconds after a restart of their edges`, async (t) => {
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
    const opened = () => herds.reduce((sum, herd) => sum + herd.opened(), 0)
    await until('all tunnels are open', () => opened() === TUNNELS, OPENED_WITHIN_MS)
    for (const { child } of edges) child.kill('SIGKILL')
    await Promise.all(edges.map(({ ended }) => ended))
    const began = performance.now()
    await Promise.all(edges.map((edge) => edge.restart()))
    let backMs = 0
    const latency = await measureLatency(
      t,
      [{ url: `${node.url}/api/v1/workspace`, key: keys[0] as string }],
      async () => {
        await until('all are back', () => opened() === 2 * TUNNELS, OPENED_WITHIN_MS)
        backMs = performance.now() - began
      },
    )
    t.diagnostic(`back after ${Math.round(backMs)} ms; requests meanwhile: ${describeLatency(latency)}`)
    for (const { failures } of herds) assert.deepEqual(failures, [])
    assert.ok(backMs < BACK_WITHIN_MS, `${backMs} ms`)
    assert.ok(latency.p99 < P99_MAX_MS, describeLatency(latency))
  })

const startEdge = (t: TestContext, url: string, edgeKey: string) =>
  startTunnelEdge(t, {
    env: {
      ADIT_URL: url,
      ADIT_EDGE_KEY: edgeKey,
      ADIT_LOG_LEVEL: 'warn',
      // All clients have one address here, which may have 500 connections otherwise.
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
  let opened = 0
  child.on('message', (message: { opened: number } | { failed: string }) => {
    if ('failed' in message) failures.push(message.failed)
    else opened = message.opened
  })
  return { opened: () => opened, failures }
}
