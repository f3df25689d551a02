// The lives of keys: each is made, used on every node until all of them know it by heart, and revoked sooner or later,
// most often while something is wrong somewhere. Then every node is asked for it again and again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import type { Calls, Key } from './calls.ts'
import type { Node } from './nodes.ts'
import type { Crowd } from './workers.ts'

const NEW_LIFE_EVERY_MS = 130
const AT_ONCE_MAX = 60
/** So that, whatever happens next, there are keys that were known before it and are revoked during it. */
const AGE_MAX_MS = 3_500
const CREATION_TRIES = 5
const REVOCATION_TRIES = 3
/** When a revoked key is presented again, after the volley at the very moment of the acknowledgement. */
const AGAIN_AFTER_MS = [40, 150, 400, 900, 1_600, 2_400, 3_500]

export interface LivesOptions {
  nodes: readonly Node[]
  calls: Calls
  crowd: Crowd
  /** Make and revoke the others, and are never revoked themselves. */
  first: readonly Key[]
  random: Random
  /** Revokes from a process of its own. */
  revokeAsOperator: (id: string) => Promise<boolean>
}

export function startLives({ nodes, calls, crowd, first, random: root, revokeAsOperator }: LivesOptions) {
  const known: Key[] = []
  /** Keys that are never revoked make others too. */
  const makers: Key[] = [...first]
  let living = 0

  const probes = Object.values(calls.probes)
  const probe = (random: Random, node: Node, key: Key) => random.pick(probes)(node, key)

  /** Whoever gives up soon, as a client that crashes, loses the answer and not what it asked for. */
  const impatience = (random: Random) => (random.chance(0.15) ? random.between(1, 150) : undefined)

  /** Undefined where no answer came, however often it was asked for. */
  async function create(random: Random, name: string): Promise<Key | undefined> {
    const by = random.pick(makers)
    for (let tries = 1; tries <= CREATION_TRIES; tries++) {
      const places = random.chance(0.1) ? random.shuffled(nodes).slice(0, 2) : [random.pick(nodes)]
      const answers = await Promise.all(
        places.map((node) => calls.create(node, by, name, impatience(random))),
      )
      const made = answers.find((answer) => answer?.status === 201)
      if (made) {
        if (random.chance(0.1)) crowd.goes(calls.create(random.pick(nodes), by, name))
        return { id: made.json.id, token: made.json.token }
      }
      await sleep(random.between(20, 200))
    }
  }

  const warm = async (key: Key) => {
    for (let turn = 0; turn < 2; turn++)
      for (const node of nodes) {
        crowd.goes(calls.probes.verify(node, key))
        await sleep(15)
      }
  }

  /** Keeps asking while the revocation is under way: an answer that is just being fetched must not outlive it. */
  function askUntil(random: Random, key: Key, isOver: () => boolean): void {
    for (const node of nodes) crowd.goes(probe(random, node, key))
    crowd.goes(
      (async () => {
        for (; !isOver(); await sleep(random.between(10, 120)))
          crowd.goes(probe(random, random.pick(nodes), key))
      })(),
    )
  }

  function askEverywhere(random: Random, key: Key): void {
    for (const node of nodes) for (const ask of probes) crowd.goes(ask(node, key))
    crowd.goes(
      (async () => {
        const began = performance.now()
        for (const afterMs of AGAIN_AFTER_MS) {
          if (crowd.isStopped) return
          await sleep(Math.max(0, began + afterMs - performance.now()))
          for (const node of nodes) crowd.goes(probe(random, node, key))
        }
      })(),
    )
  }

  async function revoke(random: Random, key: Key): Promise<void> {
    const by = random.chance(0.15) ? key : random.pick(first)
    for (let tries = 1; tries <= REVOCATION_TRIES; tries++) {
      let over = false
      askUntil(random, key, () => over)
      const answer = random.chance(0.04)
        ? { status: (await revokeAsOperator(key.id)) ? 200 : 503 }
        : await calls.revoke(random.pick(nodes), by, key.id, impatience(random))
      over = true
      // Nothing left to revoke: an earlier try got through.
      if (answer?.status === 200 || answer?.status === 404) askEverywhere(random, key)
      // One that stays in doubt must do no harm either.
      if ((answer && answer.status !== 503) || random.chance(0.3)) return
      await sleep(random.between(20, 300))
    }
  }

  async function live(random: Random, name: string): Promise<void> {
    const key = await create(random, name)
    if (!key) return
    known.push(key)
    await probe(random, random.pick(nodes), key)
    if (random.chance(0.1)) {
      makers.push(key)
      return
    }
    // Some are presented for the first time when they are about to go.
    if (random.chance(0.6)) await warm(key)
    await sleep(random.between(0, AGE_MAX_MS))
    if (crowd.isStopped) return
    await revoke(random, key)
  }

  crowd.repeats(async (turn) => {
    await sleep(NEW_LIFE_EVERY_MS)
    if (living >= AT_ONCE_MAX) return
    living += 1
    const name = `life-${turn}`
    crowd.goes(live(root.fork(name), name).finally(() => living--))
  })

  return { known }
}
