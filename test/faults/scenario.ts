// A scenario: clients work on all nodes, troubles come and go, then all is quiet and everybody is asked once more.
import { setTimeout as sleep } from 'node:timers/promises'
import { EDGE_PREFIX } from '../../src/contract/edge.ts'
import { PUBLIC_PREFIX } from '../../src/contract/variants.ts'
import type { Test } from '../support/cleanup.ts'
import type { Document } from '../support/openapi.ts'
import { run } from '../support/process.ts'
import { createRandom } from '../support/random.ts'
import { until } from '../support/until.ts'
import { createCalls, insist, type Key } from './calls.ts'
import type { Deployment } from './deployments.ts'
import { type Attempt, type History, isAcknowledged, type Trouble } from './history.ts'
import { startTroubles } from './injection.ts'
import { startLives } from './key-lifecycle.ts'
import type { Node } from './nodes.ts'
import { startReporting } from './reporting.ts'
import { createCrowd } from './workers.ts'

const VISITORS = 3
const SWEEPERS = 8
const RECOVERED_WITHIN_MS = 15_000

export interface ScenarioOptions {
  seed: string
  seconds: number
  /** Told now and then what happened so far. */
  onProgress?: (attempts: readonly Attempt[], troubles: readonly Trouble[]) => void
}

export async function play(t: Test, deployment: Deployment, options: ScenarioOptions): Promise<History> {
  const { nodes, database, first, edges, workspace } = deployment
  const random = createRandom(options.seed)
  const attempts: Attempt[] = []
  const troubles: Trouble[] = []
  const calls = createCalls(attempts, edges[0] as (typeof edges)[number])
  const clients = createCrowd()
  const troublemakers = createCrowd()

  const revokeAsOperator = async (id: string): Promise<boolean> => {
    const startMs = performance.now()
    const { code, stdout } = await run(t, ['admin', 'key', 'revoke', id, '--json'], {
      ADIT_DATABASE_URL: database,
    })
    const answer =
      code === 0 ? { status: 200, text: stdout, json: undefined, headers: new Headers() } : undefined
    const endMs = performance.now()
    attempts.push({ kind: 'operator.revoke', node: 'operator', startMs, endMs, revokes: id, answer })
    return code === 0
  }

  const { known } = startLives({
    nodes,
    calls,
    crowd: clients,
    first,
    random: random.fork('lives'),
    revokeAsOperator,
  })
  const reporting = startReporting({
    nodes,
    calls,
    crowd: clients,
    edges,
    workspace,
    random: random.fork('edges'),
  })
  for (let index = 0; index < VISITORS; index++) {
    const own = random.fork(`visitor-${index}`)
    clients.repeats(async () => {
      await sleep(own.between(5, 60))
      const key = known.length > 0 && own.chance(0.9) ? own.pick(known.slice(-50)) : own.pick(first)
      const node = own.pick(nodes)
      await (own.chance(0.05)
        ? calls.readUsage(node, own.pick(first))
        : own.pick(Object.values(calls.probes))(node, key))
    })
  }
  deployment.lanes.forEach((lane, index) => {
    startTroubles(troublemakers, troubles, lane, random.fork(`lane-${index}`))
  })

  const ends = performance.now() + options.seconds * 1_000
  while (performance.now() < ends) {
    await sleep(Math.min(10_000, ends - performance.now()))
    options.onProgress?.(attempts, troubles)
  }
  await Promise.all([clients.stop(), troublemakers.stop()])
  await Promise.all(
    nodes.map((node) => until(`${node.name} is ready`, () => isReady(node), RECOVERED_WITHIN_MS)),
  )

  const quietMs = performance.now()
  const counted = await reporting.settle()
  await askForAll(nodes, keysOf(attempts, first), calls)
  const somewhere = random.pick(nodes)
  const somebody = random.pick(first)
  const { totalBytes, eventCount } = (await insist(() => calls.readUsage(somewhere, somebody))).json
  return {
    nodes: nodes.map(({ name }) => name),
    initialKeyIds: first.map(({ id }) => id),
    attempts,
    troubles,
    quietMs,
    listed: (await insist(() => calls.listAll(somewhere, somebody))).json.tokens,
    usage: { told: { bytes: totalBytes, events: eventCount }, counted },
    documents: {
      public: await fetchDocument(somewhere, PUBLIC_PREFIX),
      edge: await fetchDocument(somewhere, EDGE_PREFIX),
    },
  }
}

/** Every key that was acknowledged. */
const keysOf = (attempts: readonly Attempt[], first: readonly Key[]): Key[] => {
  const created = attempts.filter((attempt) => attempt.kind === 'tokens.create' && isAcknowledged(attempt))
  const keys = created.map(({ answer }): [string, Key] => [answer?.json.id, answer?.json])
  return [...first, ...new Map(keys).values()]
}

/** Each key, on each node. */
async function askForAll(
  nodes: readonly Node[],
  keys: readonly Key[],
  calls: ReturnType<typeof createCalls>,
) {
  const questions = keys.flatMap((key) => nodes.map((node) => () => calls.probes.verify(node, key)))
  const sweepers = Array.from({ length: SWEEPERS }, async () => {
    for (let ask = questions.pop(); ask; ask = questions.pop()) await insist(ask)
  })
  await Promise.all(sweepers)
}

const isReady = async (node: Node) =>
  (await fetch(`${node.url}/readyz`).catch(() => undefined))?.status === 200

const fetchDocument = async (node: Node, prefix: string): Promise<Document> =>
  (await (await fetch(`${node.url}${prefix}/openapi.json`)).json()) as Document
