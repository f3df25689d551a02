// What is done to the nodes and to their database while the clients work.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { Cluster } from '../support/postgres.ts'
import type { Relay } from '../support/relay.ts'
import { until } from '../support/until.ts'
import type { Crowd } from './crowd.ts'
import type { Trouble } from './history.ts'
import type { Node } from './nodes.ts'
import type { Random } from './random.ts'

/** Longer than a node may trust its memory without word from the database, which is 2 s. */
const TOO_LONG_MS = [2_500, 4_000] as const

const PAUSE_MS = [500, 2_000] as const

/** A kind of trouble: it begins, lasts and is over when the promise is. It tells whom it befell, if not everybody. */
export interface Mischief {
  kind: string
  befalls(random: Random): { node?: Node; done: Promise<void> }
}

export function nodeMischief(nodes: readonly Node[]): Mischief[] {
  const toOne = (kind: string, act: (node: Node, random: Random) => Promise<void>): Mischief => ({
    kind,
    befalls(random) {
      const node = random.pick(nodes)
      return { node, done: act(node, random) }
    },
  })
  return [
    toOne('kill', async (node, random) => {
      await node.kill()
      await sleep(random.between(0, 600))
      await node.start()
    }),
    toOne('freeze', async (node, random) => {
      node.freeze()
      await sleep(random.between(...TOO_LONG_MS))
      node.thaw()
    }),
  ]
}

export interface Wire {
  node: Node
  relay: Relay
}

export function databaseMischief(cluster: Cluster, wires: readonly Wire[]): Mischief[] {
  const toAll = (kind: string, act: (random: Random) => Promise<void>): Mischief => ({
    kind,
    befalls: (random) => ({ done: act(random) }),
  })
  const toOneWire = (
    kind: string,
    act: (relay: Relay, random: Random, node: Node) => Promise<void>,
  ): Mischief => ({
    kind,
    befalls(random) {
      const { node, relay } = random.pick(wires)
      return { node, done: act(relay, random, node) }
    },
  })
  const restart = (how: 'fast' | 'kill') =>
    toAll(`database restart (${how})`, async (random) => {
      await cluster.stop(how)
      await sleep(random.between(0, 800))
      await cluster.start()
    })
  return [
    restart('fast'),
    restart('kill'),
    toAll('database frozen', async (random) => {
      cluster.freeze()
      await sleep(random.between(...TOO_LONG_MS))
      cluster.thaw()
    }),
    toAll('connections ended', () => endSessions(cluster, 'adit%')),
    // What wakes nodes early comes on the line, and leases are renewed on it.
    toAll('lines ended', () => endSessions(cluster, 'adit line')),
    toOneWire('wire held', async (relay, random) => {
      relay.hold()
      await sleep(random.between(...TOO_LONG_MS))
      relay.release()
    }),
    // It finds requests of several seconds when it thaws, and cannot ask anybody about them at once.
    toOneWire('freeze with wire held', async (relay, random, node) => {
      relay.hold()
      node.freeze()
      await sleep(random.between(...TOO_LONG_MS))
      node.thaw()
      await sleep(random.between(100, 600))
      relay.release()
    }),
    toOneWire('wire slow', async (relay, random) => {
      slow(relay, random)
      await sleep(random.between(1_500, 4_000))
      relay.delay(() => 0)
    }),
    // What a node hears last is old by then, and what it hears first when it is back comes bit by bit.
    toOneWire('wire slow and held', async (relay, random) => {
      slow(relay, random)
      await sleep(random.between(500, 1_500))
      relay.hold()
      await sleep(random.between(...TOO_LONG_MS))
      relay.release()
      await sleep(random.between(500, 1_500))
      relay.delay(() => 0)
    }),
    toOneWire('wire cut', async (relay, random) => {
      relay.cut()
      await sleep(random.between(0, 3_000))
      relay.mend()
    }),
    toOneWire('wire forgotten', async (relay) => relay.forget()),
  ]
}

/** Some answers come late and are overtaken by later ones on other connections. */
function slow(relay: Relay, random: Random): void {
  const slowestMs = random.between(200, 1_500)
  relay.delay(() => (random.chance(0.3) ? random.between(0, slowestMs) : 0))
}

/** Waits for such sessions, lest one day nobody is called so and this does nothing. */
async function endSessions(cluster: Cluster, application: string): Promise<void> {
  const client = new pg.Client(`${cluster.url}/postgres`)
  await client.connect()
  const all = 'select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1'
  await until(`sessions of ${application}`, async () => (await client.query(all, [application])).rowCount)
  await client.end()
}

/** One trouble after the other; each kind comes once before any comes again. */
export function startTroubles(
  crowd: Crowd,
  troubles: Trouble[],
  mischief: readonly Mischief[],
  random: Random,
) {
  let deck: Mischief[] = []
  crowd.repeats(async () => {
    // At the beginning this is also the time in which the nodes learn the first keys.
    await sleep(random.between(...PAUSE_MS))
    if (deck.length === 0) deck = random.shuffled(mischief)
    const { kind, befalls } = deck.pop() as Mischief
    const startMs = performance.now()
    const { node, done } = befalls(random)
    // Written down at once, and ended later: a run that breaks in the middle of it can still be read.
    const trouble: Trouble = { kind, node: node?.name, startMs, endMs: Number.POSITIVE_INFINITY }
    troubles.push(trouble)
    await done
    trouble.endMs = performance.now()
  })
}
