// The two ways from the load to the local server: edge and tunnel client, and one plain reverse proxy.
import type { Fixtures } from './fixtures.ts'
import type { Job, RequestSpec } from './load/jobs.ts'
import { compare, type Measured, roundLimit, type Sample, timing } from './rounds.ts'
import { startTunnel } from './tunnel.ts'

/** V8 takes some 30,000 requests to optimize the code of edge and client, and fewer for the proxy's. */
const WARM_UP_S = 10
/**
 * More than usual: a request passes through four processes, so each round depends on how they are scheduled.
 */
const ROUNDS = 11
export const routeRounds = () => (timing.requests ? timing.rounds : ROUNDS)

/** Neither idle nor at the limit of the machine. */
export const CPU_CONNECTIONS = 16
export const MICROSECONDS = 1e6

export interface Route {
  url: string
  host: string
  /** The processes between the load and the local server. */
  pids: number[]
}

const portOf = ({ url }: { url: string }) => Number(new URL(url).port)

/** Starts the local server; returns its port. */
export const startOrigin = async (fixtures: Fixtures) => portOf(await fixtures.baseline('origin', {}))

/** With a round trip, it is between edge and tunnel client, and between the proxy and the local server. */
async function startRoutes(fixtures: Fixtures, roundTripMs?: number) {
  const port = await startOrigin(fixtures)
  const delayed = async (port: number) =>
    roundTripMs ? portOf(await fixtures.baseline('delay', { port, roundTripMs })) : port
  const proxy = await fixtures.baseline('proxy', { port: await delayed(port) })
  const tunnel = await fixtures.keep(startTunnel(fixtures.folder, port, { reachEdge: delayed }))
  fixtures.progress('measuring')
  return {
    tunnel: { url: tunnel.url, host: tunnel.host, pids: [tunnel.pid, tunnel.clientPid] },
    proxy: { url: proxy.url, host: 'localhost', pids: [proxy.pid] },
  }
}

export async function compareRoutes(
  fixtures: Fixtures,
  measure: (route: Route, round: number) => Promise<Sample>,
  { rounds = timing.rounds, roundTripMs }: { rounds?: number; roundTripMs?: number } = {},
): Promise<Measured> {
  const { tunnel, proxy } = await startRoutes(fixtures, roundTripMs)
  return compare(
    (round) => measure(tunnel, round),
    (round) => measure(proxy, round),
    rounds,
  )
}

/** Small requests, one after the other on each connection. */
export function repeat(
  fixtures: Fixtures,
  { url, host, pids }: Route,
  connections: number,
  round: number,
  options: Pick<Job, 'isNewEach'> = {},
) {
  const requests: RequestSpec[] = [{ method: 'GET', path: '/', headers: { host } }]
  const draw = { kind: 'requests', requests, each: 'all' } as const
  const until = roundLimit(round, WARM_UP_S)
  return fixtures.load.run({ url, connections, draw, until, ...options }, ...pids)
}
