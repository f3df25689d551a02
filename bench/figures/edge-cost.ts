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
import { CPU_CONNECTIONS, MICROSECONDS, type Route, repeat, startOrigin } from '../routes.ts'
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
/** The target is a small difference, and processor time per request differs by half between rounds. */
const FLAT_ROUNDS = 41
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
async function measureIdleShare(pid: number): Promise<number> {
  const [cpuBefore, began] = [cpuSeconds(pid), performance.now()]
  await sleep(timing.requests ? timing.roundS * 1_000 : IDLE_MS)
  const cpuS = (cpuSeconds(pid) ?? Number.NaN) - (cpuBefore ?? Number.NaN)
  return cpuS / ((performance.now() - began) / 1_000)
}

interface LoadedEdge {
  readonly route: Route
  readonly idleShare: number
  /** The edge and all of its clients. */
  readonly pids: readonly number[]
}

async function startLoadedEdge(
  fixtures: Fixtures,
  name: keyof typeof OTHER_TUNNELS,
  port: number,
): Promise<LoadedEdge> {
  const folder = join(fixtures.folder, name)
  mkdirSync(folder)
  const edge = await fixtures.keep(startEdge(folder, ['bench', ...WORKSPACES]))
  const [key = '', ...others] = edge.keys
  const client = await fixtures.keep(startClient(folder, port, edge.url, key))
  const otherClients = await fixtures.baseline('idle-tunnels', { edge: edge.url, keys: others })
  await otherClients.request({ count: timing.requests ? OTHER_TUNNELS.few : OTHER_TUNNELS[name] })
  return {
    route: { url: edge.url, host: new URL(client.url).host, pids: [edge.pid] },
    idleShare: await measureIdleShare(edge.pid),
    pids: [edge.pid, client.pid, otherClients.pid],
  }
}

const signalAll = (pids: readonly number[], signal: 'SIGSTOP' | 'SIGCONT') => {
  for (const pid of pids) process.kill(pid, signal)
}

/** Processor time of an edge per request, with many other tunnels and with few. */
async function flat(fixtures: Fixtures): Promise<Measured> {
  const port = await startOrigin(fixtures)
  const many = await startLoadedEdge(fixtures, 'many', port)
  const few = await startLoadedEdge(fixtures, 'few', port)
  const measure =
    ({ route, idleShare }: LoadedEdge, other: LoadedEdge) =>
    async (round: number) => {
      // Not in the warm-up, which lasts as long as a response to a ping may take.
      const stopped = round < 0 ? [] : other.pids
      signalAll(stopped, 'SIGSTOP')
      const result = await repeat(fixtures, route, CPU_CONNECTIONS, round).finally(() =>
        signalAll(stopped, 'SIGCONT'),
      )
      const { cpuS = Number.NaN, completed, busy = Number.NaN } = result
      // Without what the idle tunnels cost, however many requests there are.
      return { value: ((cpuS * (1 - idleShare / busy)) / completed) * MICROSECONDS, busy }
    }
  const rounds = timing.requests ? timing.rounds : FLAT_ROUNDS
  return compare(measure(many, few), measure(few, many), rounds)
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
