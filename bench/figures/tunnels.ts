// Tunnels: edge and tunnel client compared with one plain reverse proxy in front of the same local server.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { collectGarbage, INSPECTABLE } from '../garbage.ts'
import type { RequestSpec } from '../load/jobs.ts'
import { residentMib, withWorkers } from '../processes.ts'
import { compare, type Measured, roundLimit, type Sample, singleMeasurement, timing } from '../rounds.ts'
import { startEdge, startTunnel } from '../tunnel.ts'

const TRANSFER_BYTES = 256 * 1024 * 1024
const SHORT_TRANSFER_BYTES = 1024 * 1024
/** Neither idle nor at the limit of the machine. */
export const CPU_CONNECTIONS = 16
/**
 * Opened before the measurement: what the process needs once, some 20 MB for code that V8 compiles after
 * hundreds of handshakes, is not the memory of a tunnel.
 */
const IDLE_FIRST = 700
const IDLE_TUNNELS = 1_000
/** As many as the limit of tunnels per workspace requires. */
const IDLE_WORKSPACES = ['a', 'b', 'c', 'd']
/** V8 takes some 30,000 requests to optimize the code of edge and client, and fewer for the proxy's. */
const WARM_UP_S = 10
/**
 * More than usual: a request passes through four processes, so each round depends on how they are scheduled.
 */
export const ROUNDS = 11
const WORKER_CONNECTIONS = 64
export const MICROSECONDS = 1e6
const MEGABYTE = 1e6

interface Route {
  url: string
  host: string
  /** The processes between the load and the local server. */
  pids: number[]
}

interface Routes {
  tunnel: Route
  proxy: Route
}

async function startRoutes(fixtures: Fixtures): Promise<Routes> {
  const origin = await fixtures.baseline('origin', {})
  const port = Number(new URL(origin.url).port)
  const proxy = await fixtures.baseline('proxy', { port })
  const tunnel = await fixtures.keep(startTunnel(fixtures.folder, port))
  fixtures.progress('measuring')
  return {
    tunnel: { url: tunnel.url, host: tunnel.host, pids: [tunnel.pid, tunnel.clientPid] },
    proxy: { url: proxy.url, host: 'localhost', pids: [proxy.pid] },
  }
}

async function compareRoutes(
  fixtures: Fixtures,
  measure: (route: Route, round: number) => Promise<Sample>,
  rounds = timing.rounds,
): Promise<Measured> {
  const { tunnel, proxy } = await startRoutes(fixtures)
  return compare(
    (round) => measure(tunnel, round),
    (round) => measure(proxy, round),
    rounds,
  )
}

export function repeat(fixtures: Fixtures, { url, host, pids }: Route, connections: number, round: number) {
  const requests: RequestSpec[] = [{ method: 'GET', path: '/', headers: { host } }]
  const draw = { kind: 'requests', requests, each: 'all' } as const
  return fixtures.load.run({ url, connections, draw, until: roundLimit(round, WARM_UP_S) }, ...pids)
}

const throughput = (fixtures: Fixtures, connections: number) =>
  compareRoutes(
    fixtures,
    async (route, round) => {
      const { perSecond, busy } = await repeat(fixtures, route, connections, round)
      return { value: perSecond, busy }
    },
    timing.requests ? timing.rounds : ROUNDS,
  )

const cpuPerRequest = (fixtures: Fixtures) =>
  compareRoutes(fixtures, async (route, round) => {
    const { cpuS = Number.NaN, completed, busy } = await repeat(fixtures, route, CPU_CONNECTIONS, round)
    return { value: (cpuS / completed) * MICROSECONDS, busy }
  })

const bandwidth = (fixtures: Fixtures, direction: 'down' | 'up') =>
  compareRoutes(fixtures, async ({ url, host, pids }) => {
    // The test of the bench sets a number of requests.
    const bytes = timing.requests ? SHORT_TRANSFER_BYTES : TRANSFER_BYTES
    const { perSecond, busy } = await fixtures.load.transfer({ url, host, direction, bytes }, ...pids)
    return { value: perSecond / MEGABYTE, busy }
  })

/** Processor time per request of an edge with two workers, the primary included, and of one process. */
async function workers(fixtures: Fixtures): Promise<Measured> {
  const origin = await fixtures.baseline('origin', {})
  const port = Number(new URL(origin.url).port)
  const start = async (name: string, settings: Record<string, string>) => {
    const folder = join(fixtures.folder, name)
    mkdirSync(folder, { recursive: true })
    return fixtures.keep(startTunnel(folder, port, { ADIT_EDGE_FOLDER: join(folder, 'edge'), ...settings }))
  }
  const two = await start('workers-2', { ADIT_EDGE_WORKERS: '2' })
  const one = await start('workers-1', {})
  const measure = ({ url, host, pid, clientPid }: typeof two) => {
    return async (round: number) => {
      const pids = [...withWorkers(pid), clientPid]
      const result = await repeat(fixtures, { url, host, pids }, WORKER_CONNECTIONS, round)
      const { cpuS = Number.NaN, completed, busy } = result
      return { value: (cpuS / completed) * MICROSECONDS, busy }
    }
  }
  return compare(measure(two), measure(one), timing.requests ? timing.rounds : ROUNDS)
}

/** Memory in use by an edge, for each tunnel beyond the first ones. */
async function idleMemory(fixtures: Fixtures): Promise<Measured> {
  const edge = await fixtures.keep(startEdge(fixtures.folder, IDLE_WORKSPACES, INSPECTABLE))
  const clients = await fixtures.baseline('idle-tunnels', { edge: edge.url, keys: edge.keys })
  const kilobytes = async (count: number) => {
    await clients.request({ count })
    // The first collection leaves objects with finalizers.
    for (let times = 0; times < 2; times += 1) await collectGarbage(edge.logFile)
    return residentMib(edge.pid) * 1024
  }
  const before = await kilobytes(IDLE_FIRST)
  return singleMeasurement(((await kilobytes(IDLE_FIRST + IDLE_TUNNELS)) - before) / IDLE_TUNNELS, 1)
}

const other = 'one plain node:http reverse proxy'

export const tunnels: Figure[] = [
  ...([1, 64] as const).map(
    (connections): Figure => ({
      name: `tunnel_rps_${connections}`,
      ours: `small responses through edge and tunnel client, keep-alive connections: ${connections}`,
      other,
      unit: 'requests/s',
      target: { atLeast: connections === 1 ? 0.75 : 1.2 },
      measure: (fixtures) => throughput(fixtures, connections),
    }),
  ),
  ...(['down', 'up'] as const).map(
    (direction): Figure => ({
      name: `tunnel_${direction}`,
      ours: `one ${direction}load of 256 MiB through edge and tunnel client`,
      other,
      unit: 'MB/s',
      target: { atLeast: direction === 'down' ? 0.7 : 0.6 },
      measure: (fixtures) => bandwidth(fixtures, direction),
    }),
  ),
  {
    name: 'tunnel_cpu',
    ours: `processor time of edge and tunnel client per request, ${CPU_CONNECTIONS} connections`,
    other,
    unit: 'µs',
    target: { atMost: 1.3 },
    measure: cpuPerRequest,
  },
  {
    name: 'edge_workers_2',
    ours: `processor time per request of an edge with two workers and its tunnel client, ${WORKER_CONNECTIONS} connections`,
    other: 'the same with one process',
    unit: 'µs',
    target: { atMost: 1.15 },
    measure: workers,
  },
  {
    name: 'tunnel_idle',
    ours: `memory of an edge for each of 1,000 idle tunnels, beyond the first ${IDLE_FIRST}`,
    other: 'a kilobyte',
    unit: 'KiB',
    target: { atMost: 25 },
    measure: idleMemory,
  },
]
