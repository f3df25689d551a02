// Edges with many tunnels, and several edges that forward to each other and fail.
import { mkdirSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { KEEP_ALIVE } from '../../src/tunnel-protocol/protocol.ts'
import { freePort } from '../../test/support/processes/ports.ts'
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { cpuSeconds } from '../processes.ts'
import { compare, type Measured, singleMeasurement, timing } from '../rounds.ts'
import { createTokens, startClient, startEdge } from '../tunnel.ts'
import { CPU_CONNECTIONS, MICROSECONDS, ROUNDS, repeat } from './tunnels.ts'

const HOP_CONNECTIONS = 64
const HOST = 'app.bench.localhost'
/** One for each edge that is killed. */
const FAILOVERS = 5
const VISITORS = 4
/** Longer than an edge takes to notice anything. */
const WATCHED_MS = 1_500
/** Nearly as many as an edge takes, and as few. */
const OTHER_TUNNELS = { many: 9_900, few: 10 }
/** How long they are watched without requests: twice the interval at which the edge pings them. */
const IDLE_MS = 2 * KEEP_ALIVE.intervalMs
/** An edge takes 500 tunnels of each. */
const WORKSPACES = Array.from({ length: 20 }, (_, index) => `other-${index}`)

/** Edges that know each other, and where the tunnel is: at all of them except the entry edge. */
async function startPeers(fixtures: Fixtures, file: string, located: readonly string[]) {
  const ports: Record<string, number> = {}
  for (const id of ['entry', ...located]) ports[id] = await freePort()
  const start = (edgeId: string) =>
    fixtures.baseline('peer-edge', { ...{ file, host: HOST, edgeId, ports, located } })
  return { entry: await start('entry'), serving: await Promise.all(located.map(start)) }
}

/** Requests at an edge that forwards them to another one, and at the one that has the tunnel client. */
async function hop(fixtures: Fixtures): Promise<Measured> {
  const origin = await fixtures.baseline('origin', {})
  const { file, keys } = await createTokens(fixtures.folder, ['bench'])
  const { entry, serving } = await startPeers(fixtures, file, ['serving'])
  const [first] = serving as [(typeof serving)[number]]
  const port = Number(new URL(origin.url).port)
  const client = await fixtures.keep(startClient(fixtures.folder, port, first.url, keys[0] as string))
  const measure = (url: string, ...pids: number[]) => {
    return async (round: number) => {
      const { perSecond, busy } = await repeat(fixtures, { url, host: HOST, pids }, HOP_CONNECTIONS, round)
      return { value: perSecond, busy }
    }
  }
  return compare(
    measure(entry.url, entry.pid, first.pid, client.pid),
    measure(first.url, first.pid, client.pid),
    timing.requests ? timing.rounds : ROUNDS,
  )
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

/** The longest GET while an edge is killed that has one of two clients. */
async function failOver(fixtures: Fixtures): Promise<number> {
  const origin = await fixtures.baseline('origin', {})
  const { file, keys } = await createTokens(fixtures.folder, ['bench'])
  const { entry, serving } = await startPeers(fixtures, file, ['one', 'two'])
  const port = Number(new URL(origin.url).port)
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
  await Promise.race([sleep(WATCHED_MS), ...visitors])
  isWatching = true
  // The one that was described first gets more of the requests.
  process.kill((serving[0] as (typeof serving)[number]).pid, 'SIGKILL')
  await Promise.race([sleep(WATCHED_MS), ...visitors])
  isOver = true
  await Promise.all(visitors)
  await fixtures.clear()
  return longest
}

async function failovers(fixtures: Fixtures): Promise<Measured> {
  const times: number[] = []
  for (let round = 0; round < (timing.requests ? 1 : FAILOVERS); round++) times.push(await failOver(fixtures))
  const [median = 0] = times.toSorted((a, b) => a - b).slice(Math.floor(times.length / 2))
  return {
    ...singleMeasurement(median, 1),
    spread: [Math.min(...times), Math.max(...times)],
    rounds: times.length,
  }
}

/** The share of a processor that a process uses without requests. */
async function idleShare(pid: number): Promise<number> {
  const [cpuBefore, began] = [cpuSeconds(pid), performance.now()]
  await sleep(timing.requests ? timing.roundS * 1_000 : IDLE_MS)
  const cpuS = (cpuSeconds(pid) ?? Number.NaN) - (cpuBefore ?? Number.NaN)
  return cpuS / ((performance.now() - began) / 1_000)
}

/** Processor time of an edge per request, with many other tunnels and with few. */
async function flat(fixtures: Fixtures): Promise<Measured> {
  const origin = await fixtures.baseline('origin', {})
  const port = Number(new URL(origin.url).port)
  async function prepare(name: keyof typeof OTHER_TUNNELS) {
    const folder = join(fixtures.folder, name)
    mkdirSync(folder)
    const edge = await fixtures.keep(startEdge(folder, ['bench', ...WORKSPACES]))
    const [key = '', ...others] = edge.keys
    const client = await fixtures.keep(startClient(folder, port, edge.url, key))
    const otherClients = await fixtures.baseline('idle-tunnels', { edge: edge.url, keys: others })
    await otherClients.request({ count: timing.requests ? OTHER_TUNNELS.few : OTHER_TUNNELS[name] })
    const route = { url: edge.url, host: new URL(client.url).host, pids: [edge.pid] }
    const idle = await idleShare(edge.pid)
    return async (round: number) => {
      const result = await repeat(fixtures, route, CPU_CONNECTIONS, round)
      const { cpuS = Number.NaN, completed, busy = Number.NaN } = result
      // Without what the idle tunnels cost, however many requests there are.
      return { value: ((cpuS * (1 - idle / busy)) / completed) * MICROSECONDS, busy }
    }
  }
  const [many, few] = [await prepare('many'), await prepare('few')]
  return compare(many, few, timing.requests ? timing.rounds : ROUNDS)
}

export const edges: Figure[] = [
  {
    name: 'tunnel_hop',
    ours: `small responses through an edge that forwards to another one, ${HOP_CONNECTIONS} connections`,
    other: 'the same at the edge that has the tunnel client',
    unit: 'requests/s',
    target: { atLeast: 0.6 },
    measure: hop,
  },
  {
    name: 'edge_failover',
    ours: 'the longest GET while an edge is killed that has one of two clients of the tunnel',
    other: 'a millisecond',
    unit: 'ms',
    target: { atMost: 100 },
    measure: failovers,
  },
  {
    name: 'tunnels_flat',
    ours: `processor time of an edge per request with ${OTHER_TUNNELS.many} other tunnels`,
    other: `with ${OTHER_TUNNELS.few}`,
    unit: 'µs',
    target: { atMost: 1.05 },
    measure: flat,
  },
]
