// Tunnels: edge and tunnel client compared with one plain reverse proxy in front of the same local server.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Figure, Target } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import type { Echo, Mixed } from '../load/jobs.ts'
import { type Measured, roundLimit, timing } from '../rounds.ts'
import { compareRoutes, type Route, repeat, routeRounds } from '../routes.ts'

const MEGABYTE = 1e6
const MEBIBYTE = 1024 * 1024
const TRANSFER_BYTES = 256 * MEBIBYTE
/** The test of the bench sets a number of requests. */
const SHORT_TRANSFER_BYTES = MEBIBYTE
const NEW_CONNECTIONS = 16
const FAR_BYTES = 10 * MEGABYTE
const FAR_ROUND_TRIP_MS = 50
/** Each message takes less than a request, and compiles less code. */
const ECHO_WARM_UP_S = 5
/** Longer than an edge keeps a stream for another request: the download gets a new one. */
const REUSE_MS = 2_500
const MIXED = { downloads: 32, bytes: 8 * MEBIBYTE }

const throughput = (fixtures: Fixtures, connections: number, isNewEach: boolean) =>
  compareRoutes(
    fixtures,
    async (route, round) => {
      const { perSecond, busy } = await repeat(fixtures, route, connections, round, { isNewEach })
      return { value: perSecond, busy }
    },
    { rounds: routeRounds() },
  )

async function megabytesPerSecond(
  fixtures: Fixtures,
  { url, host, pids }: Route,
  direction: 'down' | 'up',
  bytes: number,
) {
  const transfer = { url, host, direction, bytes: timing.requests ? SHORT_TRANSFER_BYTES : bytes }
  const { perSecond, busy } = await fixtures.load.carryOut({ transfer }, ...pids)
  return { value: perSecond / MEGABYTE, busy }
}

const bandwidth = (fixtures: Fixtures, direction: 'down' | 'up') =>
  compareRoutes(fixtures, (route) => megabytesPerSecond(fixtures, route, direction, TRANSFER_BYTES))

const far = (fixtures: Fixtures) =>
  compareRoutes(
    fixtures,
    async (route) => {
      await sleep(timing.requests ? 0 : REUSE_MS)
      return megabytesPerSecond(fixtures, route, 'down', FAR_BYTES)
    },
    { roundTripMs: FAR_ROUND_TRIP_MS },
  )

const echo = (fixtures: Fixtures, messages: Pick<Echo, 'connections' | 'messageBytes'>) =>
  compareRoutes(
    fixtures,
    async ({ pids, ...target }, round) => {
      const order = { echo: { ...target, ...messages, until: roundLimit(round, ECHO_WARM_UP_S) } }
      const { perSecond, busy } = await fixtures.load.carryOut(order, ...pids)
      return { value: perSecond, busy }
    },
    { rounds: routeRounds() },
  )

function mixed(fixtures: Fixtures, of: 'downloads' | 'small requests'): Promise<Measured> {
  const job: Pick<Mixed, 'downloads' | 'bytes'> = timing.requests
    ? { downloads: 2, bytes: SHORT_TRANSFER_BYTES }
    : MIXED
  return compareRoutes(fixtures, async ({ pids, ...target }, round) => {
    const order = { mixed: { ...target, ...job, until: roundLimit(round) } }
    const { perSecond, medianMs = Number.NaN, busy } = await fixtures.load.carryOut(order, ...pids)
    return { value: of === 'downloads' ? perSecond / MEGABYTE : medianMs, busy }
  })
}

const other = 'one plain node:http reverse proxy'

const figure = (
  name: string,
  ours: string,
  [unit, target]: [unit: string, Target],
  measure: Figure['measure'],
): Figure => ({ name, ours, other, unit, target, measure })

const RATES = { 1: 0.75, 64: 1.9, 256: 1 } as const
const BANDWIDTHS = { down: 1.1, up: 1.5 } as const

export const tunnels: Figure[] = [
  ...([1, 64, 256] as const).map((connections) =>
    figure(
      `tunnel_rps_${connections}`,
      `small responses through edge and tunnel client, keep-alive connections: ${connections}`,
      ['requests/s', { atLeast: RATES[connections] }],
      (fixtures) => throughput(fixtures, connections, false),
    ),
  ),
  figure(
    'tunnel_new_connections',
    `small responses, each over a new connection to the edge, ${NEW_CONNECTIONS} at a time`,
    ['requests/s', { atLeast: 1.9 }],
    (fixtures) => throughput(fixtures, NEW_CONNECTIONS, true),
  ),
  ...(['down', 'up'] as const).map((direction) =>
    figure(
      `tunnel_${direction}`,
      `one ${direction}load of 256 MiB through edge and tunnel client`,
      ['MB/s', { atLeast: BANDWIDTHS[direction] }],
      (fixtures) => bandwidth(fixtures, direction),
    ),
  ),
  figure(
    'tunnel_far',
    `one download of 10 MB with ${FAR_ROUND_TRIP_MS} ms between edge and tunnel client`,
    ['MB/s', { atLeast: 0.5 }],
    far,
  ),
  figure(
    'tunnel_mixed_down',
    `${MIXED.downloads} downloads at once, with small requests meanwhile`,
    ['MB/s', { atLeast: 0.7 }],
    (fixtures) => mixed(fixtures, 'downloads'),
  ),
  figure('tunnel_mixed_small', `median time of these small requests`, ['ms', { atMost: 1 }], (fixtures) =>
    mixed(fixtures, 'small requests'),
  ),
  figure(
    'ws_echo_1',
    'messages of 100 bytes that come back over a WebSocket, one after the other',
    ['messages/s', { atLeast: 0.6 }],
    (fixtures) => echo(fixtures, { connections: 1, messageBytes: 100 }),
  ),
  figure('ws_echo_32', 'the same over 32 WebSockets at once', ['messages/s', { atLeast: 1 }], (fixtures) =>
    echo(fixtures, { connections: 32, messageBytes: 100 }),
  ),
]
