// Key lifecycles: each key is created, used on every node until all have cached it, and revoked after a
// while, most often during a fault. Then it is presented to every node repeatedly.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../support/random.ts'
import type { Node } from '../nodes.ts'
import type { Calls, Key } from './calls.ts'
import type { Workers } from './workers.ts'

const START_INTERVAL_MS = 130
const CONCURRENT_MAX = 60
/** Spread out, so that every fault finds keys that are cached before it and revoked during it. */
const AGE_MAX_MS = 3_500
const EXPIRY_MIN_MS = 1_000
const EXPIRY_MAX_MS = 3_000
const CREATE_ATTEMPTS = 5
const REVOKE_ATTEMPTS = 3
/** When a revoked key is presented again, after the burst at the acknowledgement. */
const PROBE_AFTER_MS = [40, 150, 400, 900, 1_600, 2_400, 3_500]

interface LifecycleOptions {
  nodes: readonly Node[]
  calls: Calls
  workers: Workers
  /** They create and revoke the others, and are never revoked. */
  adminKeys: readonly Key[]
  random: Random
  /** Revokes from a separate process. */
  revokeAsOperator: (id: string) => Promise<boolean>
  /** Creates a key that expires; undefined if it failed. */
  createExpiring: (name: string, lifetimeMs: number) => Promise<Key | undefined>
}

export function startKeyLifecycles({
  nodes,
  calls,
  workers,
  adminKeys,
  random: root,
  revokeAsOperator,
  createExpiring,
}: LifecycleOptions) {
  const created: Key[] = []
  /** Keys that are never revoked create others too. */
  const creators: Key[] = [...adminKeys]
  let active = 0

  const probes = Object.values(calls.probes)
  const probe = (random: Random, node: Node, key: Key) => random.pick(probes)(node, key)

  /** Some clients disconnect early, as if they crashed: the request still takes effect. */
  const abandonAfter = (random: Random) => (random.chance(0.15) ? random.between(1, 150) : undefined)

  /** Undefined if no attempt got a response. */
  async function create(random: Random, name: string): Promise<Key | undefined> {
    const by = random.pick(creators)
    for (let attempt = 1; attempt <= CREATE_ATTEMPTS; attempt++) {
      const targets = random.chance(0.1) ? random.shuffled(nodes).slice(0, 2) : [random.pick(nodes)]
      const responses = await Promise.all(
        targets.map((node) => calls.create(node, by, name, abandonAfter(random))),
      )
      const success = responses.find((response) => response?.status === 201)
      if (success) {
        if (random.chance(0.1)) workers.run(calls.create(random.pick(nodes), by, name))
        return { id: success.json.id, token: success.json.token }
      }
      await sleep(random.between(20, 200))
    }
  }

  const warmCaches = async (key: Key) => {
    for (let round = 0; round < 2; round++)
      for (const node of nodes) {
        workers.run(calls.probes.verify(node, key))
        await sleep(15)
      }
  }

  /** Probes during the revocation: a database read that overlaps it must not be cached. */
  function probeUntil(random: Random, key: Key, isDone: () => boolean): void {
    for (const node of nodes) workers.run(probe(random, node, key))
    workers.run(
      (async () => {
        for (; !isDone(); await sleep(random.between(10, 120)))
          workers.run(probe(random, random.pick(nodes), key))
      })(),
    )
  }

  function probeAllNodes(random: Random, key: Key): void {
    for (const node of nodes) for (const probeBy of probes) workers.run(probeBy(node, key))
    workers.run(
      (async () => {
        const startedAt = performance.now()
        for (const afterMs of PROBE_AFTER_MS) {
          if (workers.isStopped) return
          await sleep(Math.max(0, startedAt + afterMs - performance.now()))
          for (const node of nodes) workers.run(probe(random, node, key))
        }
      })(),
    )
  }

  async function revoke(random: Random, key: Key): Promise<void> {
    const by = random.chance(0.15) ? key : random.pick(adminKeys)
    for (let attempt = 1; attempt <= REVOKE_ATTEMPTS; attempt++) {
      let done = false
      probeUntil(random, key, () => done)
      const response = random.chance(0.04)
        ? { status: (await revokeAsOperator(key.id)) ? 200 : 503 }
        : await calls.revoke(random.pick(nodes), by, key.id, abandonAfter(random))
      done = true
      // 404: an earlier attempt took effect.
      if (response?.status === 200 || response?.status === 404) probeAllNodes(random, key)
      // Sometimes abandons a revocation whose outcome is unknown.
      if ((response && response.status !== 503) || random.chance(0.3)) return
      await sleep(random.between(20, 300))
    }
  }

  /** Like a revoked key, it is presented to all nodes around the instant at which it must be rejected. */
  async function runExpiry(random: Random, name: string): Promise<void> {
    const lifetimeMs = random.between(EXPIRY_MIN_MS, EXPIRY_MAX_MS)
    const key = await createExpiring(name, lifetimeMs)
    if (!key) return
    created.push(key)
    await warmCaches(key)
    let done = false
    probeUntil(random, key, () => done)
    await sleep(lifetimeMs)
    done = true
    probeAllNodes(random, key)
  }

  async function runLifecycle(random: Random, name: string): Promise<void> {
    if (random.chance(0.15)) return runExpiry(random, name)
    const key = await create(random, name)
    if (!key) return
    created.push(key)
    await probe(random, random.pick(nodes), key)
    if (random.chance(0.1)) {
      creators.push(key)
      return
    }
    // Some keys are not cached before their revocation.
    if (random.chance(0.6)) await warmCaches(key)
    await sleep(random.between(0, AGE_MAX_MS))
    if (workers.isStopped) return
    await revoke(random, key)
  }

  workers.loop(async (iteration) => {
    await sleep(START_INTERVAL_MS)
    if (active >= CONCURRENT_MAX) return
    active += 1
    const name = `key-${iteration}`
    workers.run(runLifecycle(root.fork(name), name).finally(() => active--))
  })

  return { created }
}
