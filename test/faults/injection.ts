// What is done to the nodes, to their wires to the database and to the database itself while the clients work.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Cluster } from '../support/postgres.ts'
import type { Random } from '../support/random.ts'
import type { Relay } from '../support/relay.ts'
import { until } from '../support/until.ts'
import type { Trouble } from './history.ts'
import type { Node } from './nodes.ts'
import type { Crowd } from './workers.ts'

type Span = readonly [minMs: number, maxMs: number]

/** Longer than a node may trust its memory without word from the database, which is 2 s. */
const TOO_LONG: Span = [2_500, 4_000]
/** The first pause is also the time in which the nodes learn the first keys. */
const PAUSE: Span = [500, 2_000]
/** Longer, because what happens to the database happens to everybody. */
const DATABASE_PAUSE: Span = [1_000, 6_000]

/** A kind of trouble: it begins, lasts and is over when the promise is. It tells whom it befell, if not everybody. */
export interface Mischief {
  kind: string
  befalls(random: Random): { node?: Node; done: Promise<void> }
}

/** One trouble comes after the other, beside those of other lanes; each kind comes once before any comes again. */
export interface Lane {
  mischief: Mischief[]
  pause: Span
}

export function troubleNodes(nodes: readonly Node[]): Lane {
  const toOne = (kind: string, act: (node: Node, random: Random) => Promise<void>): Mischief => ({
    kind,
    befalls(random) {
      const node = random.pick(nodes)
      return { node, done: act(node, random) }
    },
  })
  const mischief = [
    toOne('kill', async (node, random) => {
      await node.kill()
      await sleep(random.between(0, 600))
      await node.start()
    }),
    toOne('freeze', async (node, random) => {
      node.freeze()
      await sleep(random.between(...TOO_LONG))
      node.thaw()
    }),
  ]
  return { mischief, pause: PAUSE }
}

export function troubleDatabase(cluster: Cluster): Lane {
  const toAll = (kind: string, act: (random: Random) => Promise<void>): Mischief => ({
    kind,
    befalls: (random) => ({ done: act(random) }),
  })
  const restart = (how: 'fast' | 'kill') =>
    toAll(`database restart (${how})`, async (random) => {
      await cluster.stop(how)
      await sleep(random.between(0, 800))
      await cluster.start()
    })
  const mischief = [
    restart('fast'),
    restart('kill'),
    toAll('database frozen', async (random) => {
      cluster.freeze()
      await sleep(random.between(...TOO_LONG))
      cluster.thaw()
    }),
    toAll('connections ended', () => endSessions(cluster, 'adit%')),
    // What wakes nodes early comes on the line, and leases are renewed on it.
    toAll('control connections ended', () => endSessions(cluster, 'adit control')),
  ]
  return { mischief, pause: DATABASE_PAUSE }
}

/** Waits for such sessions, lest one day nobody is called so and this does nothing. */
async function endSessions(cluster: Cluster, application: string): Promise<void> {
  const client = new pg.Client(`${cluster.url}/postgres`)
  await client.connect()
  const all = 'select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1'
  await until(`sessions of ${application}`, async () => (await client.query(all, [application])).rowCount)
  await client.end()
}

export interface Wire {
  node: Node
  relay: Relay
}

export function troubleWires(wires: readonly Wire[]): Lane {
  const toOne = (kind: string, act: (wire: Wire, random: Random) => Promise<void>): Mischief => ({
    kind,
    befalls(random) {
      const wire = random.pick(wires)
      return { node: wire.node, done: act(wire, random) }
    },
  })
  const slow = toOne('wire slow', async ({ relay }, random) => {
    slowDown(relay, random)
    await sleep(random.between(...TOO_LONG))
    relay.delay(() => 0)
  })
  // What the node hears last is old by then, and what it hears first when it is back comes bit by bit.
  const slowAndHeld = toOne('wire slow and held', async ({ relay }, random) => {
    slowDown(relay, random)
    await sleep(random.between(500, 1_500))
    relay.hold()
    await sleep(random.between(...TOO_LONG))
    relay.release()
    await sleep(random.between(500, 1_500))
    relay.delay(() => 0)
  })
  const held = toOne('wire held', async ({ relay }, random) => {
    relay.hold()
    await sleep(random.between(...TOO_LONG))
    relay.release()
  })
  // It finds requests of several seconds when it thaws, and cannot ask anybody about them at once.
  const heldAndFrozen = toOne('wire held and node frozen', async ({ relay, node }, random) => {
    relay.hold()
    node.freeze()
    await sleep(random.between(...TOO_LONG))
    node.thaw()
    await sleep(random.between(100, 600))
    relay.release()
  })
  const cut = toOne('wire cut', async ({ relay }, random) => {
    relay.cut()
    await sleep(random.between(0, 3_000))
    relay.mend()
  })
  const forgotten = toOne('wire forgotten', async ({ relay }) => relay.forget())
  // Answers that overtake each other are what memories are most easily wrong about.
  const mischief = [held, heldAndFrozen, slow, slow, slowAndHeld, slowAndHeld, cut, forgotten]
  return { mischief, pause: PAUSE }
}

/** Some answers come late and are overtaken by later ones on other connections. */
function slowDown(relay: Relay, random: Random): void {
  const slowestMs = random.between(200, 1_500)
  relay.delay(() => (random.chance(0.3) ? random.between(0, slowestMs) : 0))
}

export function startTroubles(crowd: Crowd, troubles: Trouble[], { mischief, pause }: Lane, random: Random) {
  let deck: Mischief[] = []
  crowd.repeats(async () => {
    await sleep(random.between(...pause))
    if (crowd.isStopped) return
    if (deck.length === 0) deck = random.shuffled(mischief)
    const { kind, befalls } = deck.pop() as Mischief
    const startMs = performance.now()
    const { node, done } = befalls(random)
    await done
    troubles.push({ kind, node: node?.name, startMs, endMs: performance.now() })
  })
}
