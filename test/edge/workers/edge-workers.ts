// Edges with two workers, and which of them has which client.
import assert from 'node:assert/strict'
import type { Test } from '../../support/cleanup.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import type { Edge } from '../../support/edges/tunnels.ts'
import { workersOf } from '../../support/processes/workers.ts'
import { until } from '../../support/until.ts'

export const TWO_WORKERS = { ADIT_EDGE_WORKERS: '2', ADIT_METRICS_PORT: '0' }
/** With this many connections, it practically never happens that all reach the same one of two workers. */
export const CONNECTIONS = 24

export async function startStandaloneWorkers(t: Test, env: Record<string, string> = {}) {
  const standalone = await startStandaloneEdge(t, ['acme'], { ...TWO_WORKERS, ...env })
  await untilTwoWorkers(standalone.edge)
  return { ...standalone, key: standalone.keys[0] as string }
}

/** The second worker starts after the first one listens. */
const untilTwoWorkers = (edge: Edge) => edge.waitFor(/"worker listening"/, 'stderr')

export const workersOfEdge = ({ child }: Pick<Edge, 'child'>) => workersOf(child.pid as number)

/** The log of an edge as it is written. */
export function collectLog({ child }: Pick<Edge, 'child'>) {
  let log = ''
  child.stderr?.on('data', (chunk) => {
    log += chunk
  })
  const lines = (message: string) =>
    log
      .split('\n')
      .filter((line) => line.endsWith(`"msg":"${message}"}`))
      .map((line) => JSON.parse(line) as { pid: number; host: string; reason?: string })
  return { lines }
}

/** Calls `open` until each of two workers has a client of the host. Returns the workers that have them. */
export async function openInEachWorker(
  edge: Edge,
  log: ReturnType<typeof collectLog>,
  host: string,
  open: () => Promise<unknown>,
): Promise<number[]> {
  const opened = () => log.lines('tunnel opened').filter((line) => line.host === host)
  const pids = () => [...new Set(opened().map(({ pid }) => pid))]
  for (let count = opened().length + 1; pids().length < 2; count += 1) {
    assert.ok(count < CONNECTIONS, 'all clients are connected to one worker')
    await open()
    await until('the opening is logged', () => opened().length >= count)
  }
  assert.deepEqual(pids().toSorted(), workersOfEdge(edge).toSorted())
  return pids()
}
