// Injects faults into the nodes, their links to the database and the database itself while the clients run.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { query } from '../support/databases/client.ts'
import type { Cluster } from '../support/databases/postgres.ts'
import type { Relay } from '../support/network/relay.ts'
import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import type { InjectedFault } from './checker/history.ts'
import type { Node } from './nodes.ts'
import type { Workers } from './scenario/workers.ts'

type Span = readonly [minMs: number, maxMs: number]

/** Longer than a lease, which is 2 s. */
const BEYOND_LEASE: Span = [2_500, 4_000]
/** Shorter than the time that a request waits for a connection or a lock, so that some succeed. */
const POOLS_FULL: Span = [500, 2_000]
const CLOCK_WRONG: Span = [500, 2_000]
/** Time between faults. The first one is also the time in which nodes cache the first keys. */
const GAP: Span = [500, 2_000]
/** Longer, because faults of the database affect all nodes. */
const DATABASE_GAP: Span = [1_000, 6_000]

const OUT_OF_CONNECTIONS = '53300'

interface FaultType {
  kind: string
  /** `done` resolves when the fault is over; `node` is the affected node, or absent if all are. */
  inject(random: Random): { node?: Node; done: Promise<void> }
}

/**
 * Faults one after another, concurrently with other schedules. Each type occurs once before any occurs again.
 */
export interface FaultSchedule {
  types: FaultType[]
  gap: Span
}

export function nodeFaults(nodes: readonly Node[]): FaultSchedule {
  const toOneOf =
    (candidates: readonly Node[]) =>
    (kind: string, apply: (node: Node, random: Random) => Promise<void>): FaultType => ({
      kind,
      inject(random) {
        const node = random.pick(candidates)
        return { node, done: apply(node, random) }
      },
    })
  const toOne = toOneOf(nodes)
  const withWorkers = nodes.filter(({ hasWorkers }) => hasWorkers)
  const types = [
    ...(withWorkers.length > 0 ? [toOneOf(withWorkers)('worker killed', (node) => node.killWorker())] : []),
    toOne('kill', async (node, random) => {
      await node.kill()
      await sleep(random.between(0, 600))
      await node.start()
    }),
    toOne('pause', async (node, random) => {
      node.pause()
      await sleep(random.between(...BEYOND_LEASE))
      node.resume()
    }),
    toOne('clock jumps', async (node, random) => {
      node.jumpClock()
      await sleep(random.between(...CLOCK_WRONG))
      node.jumpClock()
    }),
  ]
  return { types, gap: GAP }
}

export function databaseFaults(cluster: Cluster): FaultSchedule {
  const toAll = (kind: string, apply: (random: Random) => Promise<void>): FaultType => ({
    kind,
    inject: (random) => ({ done: apply(random) }),
  })
  const restart = (how: 'fast' | 'kill') =>
    toAll(`database restart (${how})`, async (random) => {
      await cluster.stop(how)
      await sleep(random.between(0, 800))
      await cluster.start()
    })
  const types = [
    restart('fast'),
    restart('kill'),
    toAll('database paused', async (random) => {
      cluster.freeze()
      await sleep(random.between(...BEYOND_LEASE))
      cluster.thaw()
    }),
    toAll('connections terminated', () => terminateSessions(cluster, 'adit%')),
    // Notifications arrive and leases are renewed on the control connection.
    toAll('control connections terminated', () => terminateSessions(cluster, 'adit control')),
    toAll('pools full', (random) => lockKeys(cluster, random.between(...POOLS_FULL))),
    toAll('database out of connections', (random) =>
      useAllConnections(cluster, random.between(...BEYOND_LEASE)),
    ),
  ]
  return { types, gap: DATABASE_GAP }
}

/** Waits for at least one session, so that a renamed application does not turn this into a no-op. */
async function terminateSessions(cluster: Cluster, application: string): Promise<void> {
  const terminate = 'select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1'
  await until(
    `sessions of ${application}`,
    async () => (await query(`${cluster.url}/postgres`, terminate, [application])).length,
  )
}

/** Requests that read or write keys wait, until each pool has no free connection. */
async function lockKeys(cluster: Cluster, ms: number): Promise<void> {
  const client = new pg.Client(`${cluster.url}/postgres`)
  await client.connect()
  await client.query('begin; lock table api_keys in access exclusive mode')
  await sleep(ms)
  await client.query('rollback')
  await client.end()
}

/** Also takes what becomes free when the sessions of the nodes end, so that they cannot connect again. */
async function useAllConnections(cluster: Cluster, ms: number): Promise<void> {
  const clients: pg.Client[] = []
  const connect = async (): Promise<boolean> => {
    const client = new pg.Client(`${cluster.url}/postgres`)
    client.on('error', () => {})
    try {
      await client.connect()
      clients.push(client)
      return true
    } catch (error) {
      if ((error as pg.DatabaseError).code !== OUT_OF_CONNECTIONS) throw error
      return false
    }
  }
  while (await connect()) {}
  await clients[0]?.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'adit%'",
  )
  const endAt = performance.now() + ms
  while (performance.now() < endAt) if (!(await connect())) await sleep(20)
  await Promise.all(clients.map((client) => client.end()))
}

interface Link {
  node: Node
  relay: Relay
}

export function linkFaults(links: readonly Link[]): FaultSchedule {
  const toOne = (kind: string, apply: (link: Link, random: Random) => Promise<void>): FaultType => ({
    kind,
    inject(random) {
      const link = random.pick(links)
      return { node: link.node, done: apply(link, random) }
    },
  })
  const slow = toOne('link slow', async ({ relay }, random) => {
    slowDown(relay, random)
    await sleep(random.between(...BEYOND_LEASE))
    relay.delay(() => 0)
  })
  // Stalls while responses are late, and releases them in pieces.
  const slowAndStalled = toOne('link slow and stalled', async ({ relay }, random) => {
    slowDown(relay, random)
    await sleep(random.between(500, 1_500))
    relay.hold()
    await sleep(random.between(...BEYOND_LEASE))
    relay.release()
    await sleep(random.between(500, 1_500))
    relay.delay(() => 0)
  })
  const stalled = toOne('link stalled', async ({ relay }, random) => {
    relay.hold()
    await sleep(random.between(...BEYOND_LEASE))
    relay.release()
  })
  // The node resumes with requests that are seconds old, and cannot reach the database.
  const stalledAndPaused = toOne('link stalled and node paused', async ({ relay, node }, random) => {
    relay.hold()
    node.pause()
    await sleep(random.between(...BEYOND_LEASE))
    node.resume()
    await sleep(random.between(100, 600))
    relay.release()
  })
  const cut = toOne('link cut', async ({ relay }, random) => {
    relay.cut()
    await sleep(random.between(0, 3_000))
    relay.mend()
  })
  const blackhole = toOne('link blackholed', async ({ relay }) => relay.blackhole())
  // Slow links twice: responses that overtake each other are the hardest case for a cache.
  const types = [stalled, stalledAndPaused, slow, slow, slowAndStalled, slowAndStalled, cut, blackhole]
  return { types, gap: GAP }
}

/** Delays some responses, so that later ones on other connections overtake them. */
function slowDown(relay: Relay, random: Random): void {
  const slowestMs = random.between(200, 1_500)
  relay.delay(() => (random.chance(0.3) ? random.between(0, slowestMs) : 0))
}

export function startInjection(
  workers: Workers,
  injected: InjectedFault[],
  { types, gap }: FaultSchedule,
  random: Random,
) {
  let remaining: FaultType[] = []
  workers.loop(async () => {
    await sleep(random.between(...gap))
    if (workers.isStopped) return
    if (remaining.length === 0) remaining = random.shuffled(types)
    const { kind, inject } = remaining.pop() as FaultType
    const startMs = performance.now()
    const { node, done } = inject(random)
    await done
    injected.push({ kind, node: node?.name, startMs, endMs: performance.now() })
  })
}
