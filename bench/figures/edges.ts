// Edges that fail, several that forward to each other, and one with several processes.
import { mkdirSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/processes/ports.ts'
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { withWorkers } from '../processes.ts'
import { compare, type Measured, singleMeasurement, timing } from '../rounds.ts'
import { MICROSECONDS, repeat, routeRounds, startOrigin } from '../routes.ts'
import { createTokens, startClient, startEdge, startTunnel } from '../tunnel.ts'

const CONNECTIONS = 64
const HOST = 'app.bench.localhost'
/** Each run starts its own edges and kills one. The figure is the median of the runs. */
const FAILOVERS = 5
const VISITORS = 4
const HERD_TUNNELS = 1_000
/** Two, because an edge takes 500 tunnels of each. */
const HERD_WORKSPACES = ['a', 'b']
/** Length of the warm-up before the kill and of the measurement after it; failure detection takes less. */
const PHASE_MS = 1_500

/** Edges that forward to each other. All but the entry edge get a client of the tunnel from the caller. */
async function startPeers(fixtures: Fixtures, file: string, servingIds: readonly string[]) {
  const ports: Record<string, number> = {}
  for (const id of ['entry', ...servingIds]) ports[id] = await freePort()
  const start = (edgeId: string) =>
    fixtures.baseline('peer-edge', { ...{ file, host: HOST, edgeId, ports, servingIds } })
  return { entry: await start('entry'), serving: await Promise.all(servingIds.map(start)) }
}

/** Requests per second at an edge that forwards to the one with the tunnel client, and at that one. */
async function hop(fixtures: Fixtures): Promise<Measured> {
  const port = await startOrigin(fixtures)
  const { file, keys } = await createTokens(fixtures.folder, ['bench'])
  const { entry, serving } = await startPeers(fixtures, file, ['serving'])
  const [servingEdge] = serving as [(typeof serving)[number]]
  const client = await fixtures.keep(startClient(fixtures.folder, port, servingEdge.url, keys[0] as string))
  const measure = (url: string, ...pids: number[]) => {
    return async (round: number) => {
      const { perSecond, busy } = await repeat(fixtures, { url, host: HOST, pids }, CONNECTIONS, round)
      return { value: perSecond, busy }
    }
  }
  return compare(
    measure(entry.url, entry.pid, servingEdge.pid, client.pid),
    measure(servingEdge.url, servingEdge.pid, client.pid),
    routeRounds(),
  )
}

/** Processor time per request of an edge and its tunnel client: with two workers, and as one process. */
async function workers(fixtures: Fixtures): Promise<Measured> {
  const port = await startOrigin(fixtures)
  const start = (count: string) => {
    const folder = join(fixtures.folder, `workers-${count}`)
    mkdirSync(folder)
    const settings = { ADIT_EDGE_FOLDER: join(folder, 'edge'), ADIT_EDGE_WORKERS: count }
    return fixtures.keep(startTunnel(folder, port, { settings }))
  }
  const measure = ({ url, host, pid, clientPid }: Awaited<ReturnType<typeof start>>) => {
    return async (round: number) => {
      const pids = [...withWorkers(pid), clientPid]
      const result = await repeat(fixtures, { url, host, pids }, CONNECTIONS, round)
      const { cpuS = Number.NaN, completed, busy } = result
      return { value: (cpuS / completed) * MICROSECONDS, busy }
    }
  }
  return compare(measure(await start('2')), measure(await start('1')), routeRounds())
}

/** The time of a GET, which must succeed. */
function timeGet(url: string): Promise<number> {
  const sentAt = performance.now()
  return new Promise((resolve, reject) => {
    get(url, { headers: { host: HOST } }, (response) => {
      response.resume()
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 200) resolve(performance.now() - sentAt)
        else reject(new Error(`HTTP ${response.statusCode}`))
      })
    }).on('error', reject)
  })
}

/** The longest GET of a run: two edges have a client of the tunnel, and one of them is killed. */
async function killServingEdge(fixtures: Fixtures): Promise<number> {
  const port = await startOrigin(fixtures)
  const { file, keys } = await createTokens(fixtures.folder, ['bench'])
  const { entry, serving } = await startPeers(fixtures, file, ['one', 'two'])
  for (const [index, { url }] of serving.entries()) {
    const folder = join(fixtures.folder, `client-${index}`)
    mkdirSync(folder, { recursive: true })
    await fixtures.keep(startClient(folder, port, url, keys[0] as string))
  }
  let longest = 0
  let isOver = false
  let isWatching = false
  const visitors = Array.from({ length: VISITORS }, async () => {
    while (!isOver) {
      const ms = await timeGet(entry.url)
      if (isWatching) longest = Math.max(longest, ms)
    }
  })
  await Promise.race([sleep(PHASE_MS), ...visitors])
  isWatching = true
  // With equal load, the entry edge picks the edge that answered its lookup first: usually this one.
  process.kill((serving[0] as (typeof serving)[number]).pid, 'SIGKILL')
  await Promise.race([sleep(PHASE_MS), ...visitors])
  isOver = true
  await Promise.all(visitors)
  await fixtures.clear()
  return longest
}

async function failover(fixtures: Fixtures): Promise<Measured> {
  const times: number[] = []
  for (let round = 0; round < (timing.requests ? 1 : FAILOVERS); round++)
    times.push(await killServingEdge(fixtures))
  const [median = 0] = times.toSorted((a, b) => a - b).slice(Math.floor(times.length / 2))
  return {
    ...singleMeasurement(median, 1),
    spread: [Math.min(...times), Math.max(...times)],
    rounds: times.length,
  }
}

/** From the exit of an edge until all tunnels are open again at the restarted one. */
async function herd(fixtures: Fixtures): Promise<Measured> {
  const settings = { ADIT_EDGE_PORT: String(await freePort()) }
  const edge = await fixtures.keep(startEdge(fixtures.folder, HERD_WORKSPACES, settings))
  const clients = await fixtures.baseline('idle-tunnels', { edge: edge.url, keys: edge.keys })
  await clients.request({ count: timing.requests ? HERD_WORKSPACES.length : HERD_TUNNELS })
  const reopened = clients.request('loss expected')
  await edge.stop()
  const endedAt = performance.now()
  // The tokens file has the workspaces.
  await fixtures.keep(startEdge(fixtures.folder, [], settings))
  await reopened
  return singleMeasurement((performance.now() - endedAt) / 1_000, 1)
}

export const edges: Figure[] = [
  {
    name: 'tunnel_hop',
    ours: `small responses through an edge that forwards to another one, ${CONNECTIONS} connections`,
    other: 'the same at the edge that has the tunnel client',
    unit: 'requests/s',
    target: { atLeast: 0.6 },
    measure: hop,
  },
  {
    name: 'edge_workers_2',
    ours: `processor time per request of an edge with two workers and its tunnel client, ${CONNECTIONS} connections`,
    other: 'the same with one process',
    unit: 'µs',
    target: { atMost: 1.15 },
    measure: workers,
  },
  {
    name: 'edge_failover',
    ours: 'the longest GET while an edge is killed that has one of two clients of the tunnel',
    other: 'a millisecond',
    unit: 'ms',
    target: { atMost: 100 },
    measure: failover,
  },
  {
    name: 'herd',
    ours: `the time until ${HERD_TUNNELS} tunnels are open again after their edge was killed and restarted`,
    other: 'a second',
    unit: 's',
    target: { atMost: 5 },
    measure: herd,
  },
]
