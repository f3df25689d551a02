// What an edge needs: memory for idle tunnels, and processor time for a request with many of them.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { KEEP_ALIVE } from '../../src/tunnel-protocol/protocol.ts'
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { collectGarbage, INSPECTABLE } from '../garbage.ts'
import { cpuSeconds, residentMib } from '../processes.ts'
import { compare, type Measured, singleMeasurement, timing } from '../rounds.ts'
import { CPU_CONNECTIONS, MICROSECONDS, repeat, routeRounds, startOrigin } from '../routes.ts'
import { startClient, startEdge } from '../tunnel.ts'

/**
 * Opened before the measurement: what the process needs once, some 20 MB for code that V8 compiles after
 * hundreds of handshakes, is not the memory of a tunnel.
 */
const IDLE_FIRST = 700
const IDLE_TUNNELS = 1_000
/** As many as the limit of tunnels per workspace requires. */
const IDLE_WORKSPACES = ['a', 'b', 'c', 'd']
/** Nearly as many as an edge takes, and as few. */
const OTHER_TUNNELS = { many: 9_900, few: 10 }
/** How long they are watched without requests: twice the interval at which the edge pings them. */
const IDLE_MS = 2 * KEEP_ALIVE.intervalMs
/** An edge takes 500 tunnels of each. */
const WORKSPACES = Array.from({ length: 20 }, (_, index) => `other-${index}`)

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

/** The share of a processor that a process uses without requests. */
async function idleShare(pid: number): Promise<number> {
  const [cpuBefore, began] = [cpuSeconds(pid), performance.now()]
  await sleep(timing.requests ? timing.roundS * 1_000 : IDLE_MS)
  const cpuS = (cpuSeconds(pid) ?? Number.NaN) - (cpuBefore ?? Number.NaN)
  return cpuS / ((performance.now() - began) / 1_000)
}

/** Processor time of an edge per request, with many other tunnels and with few. */
async function flat(fixtures: Fixtures): Promise<Measured> {
  const port = await startOrigin(fixtures)
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
  return compare(many, few, routeRounds())
}

export const edgeCosts: Figure[] = [
  {
    name: 'tunnel_idle',
    ours: `memory of an edge for each of 1,000 idle tunnels, beyond the first ${IDLE_FIRST}`,
    other: 'a kilobyte',
    unit: 'KiB',
    target: { atMost: 25 },
    measure: idleMemory,
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
