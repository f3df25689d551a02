// Revocation: how long it takes with many nodes, compared with a few.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import type { Baseline, Served } from '../processes.ts'
import { compare, type Measured, median, type Scenario, timing } from '../rounds.ts'
import { bearer, ownKey, requestOnce } from '../scenarios.ts'
import { alone } from '../seed/catalog.ts'

const MANY = 100
const FEW = 3
/** A single process would be busier than a hundred nodes are. */
const PROCESSES = 4
const REVOCATIONS = 12
/** Not measured: PostgreSQL plans a prepared statement anew for its first executions on a connection. */
const WARM_UP = 6
/** Before the first round: nodes run for weeks, with code that V8 has optimized. */
const FIRST_WARM_UP = 200
/** A new node is registered and up to date by then. */
const SETTLE_MS = 700

async function revokeOnce(served: Served, token: string): Promise<number> {
  const headers = bearer(token)
  const { body } = await requestOnce(served.url, { method: 'POST', path: '/api/v1/tokens', headers })
  const path = `/api/v1/tokens/${(JSON.parse(body) as { id: string }).id}`
  const began = performance.now()
  const { status } = await requestOnce(served.url, { method: 'DELETE', path, headers })
  if (status !== 200) throw new Error(`the revocation got ${status}`)
  return performance.now() - began
}

/** The median of revocations one after the other. */
const revoking =
  (served: Served, followers: Baseline[], count: number, token: string): Scenario =>
  async (round) => {
    const share = (index: number) => Math.floor((count + PROCESSES - 1 - index) / PROCESSES)
    await Promise.all(followers.map((each, index) => each.request({ count: share(index) })))
    await sleep(SETTLE_MS)
    const times: number[] = []
    const warmUp = round < 0 && !timing.requests ? FIRST_WARM_UP : WARM_UP
    while (times.length < warmUp + REVOCATIONS) times.push(await revokeOnce(served, token))
    return { value: median(times.slice(warmUp)) }
  }

async function startNodes(fixtures: Fixtures) {
  const url = await fixtures.postgres('revoke', alone)
  const ours = await fixtures.adit(url)
  const followers: Baseline[] = []
  while (followers.length < PROCESSES) followers.push(await fixtures.baseline('followers', { url }))
  return { ours, followers }
}

async function againstFew(fixtures: Fixtures): Promise<Measured> {
  const { ours, followers } = await startNodes(fixtures)
  const token = ownKey(fixtures)
  return compare(revoking(ours, followers, MANY, token), revoking(ours, followers, FEW, token))
}

export const revoke: Figure[] = [
  {
    name: 'revoke_100',
    ours: `DELETE /tokens/{id} until ${MANY} other nodes have acknowledged it, PostgreSQL`,
    other: `${FEW} other nodes`,
    unit: 'ms',
    target: { atMost: 4 },
    measure: againstFew,
  },
]
