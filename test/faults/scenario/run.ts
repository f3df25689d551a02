// A scenario: clients use all nodes while faults are injected; then the faults end and every key is verified
// once more.
import { setTimeout as sleep } from 'node:timers/promises'
import { apis } from '../../../src/contract/apis.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import type { Document } from '../../support/api/openapi.ts'
import { operator } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { run } from '../../support/processes/process.ts'
import { createRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { type Attempt, type History, type InjectedFault, isAcknowledged } from '../checker/history.ts'
import { type Deployment, openServicesOn } from '../deployments.ts'
import { startInjection } from '../injection.ts'
import type { Node } from '../nodes.ts'
import { startArchiving } from './archiving.ts'
import { createCalls, type Key, retryUntilResponse } from './calls.ts'
import { extendUntil, hasEnoughRevocations, hasRestored } from './extension.ts'
import { startKeyLifecycles } from './key-lifecycle.ts'
import { startReporting } from './reporting.ts'
import { createWorkers } from './workers.ts'

const PROBERS = 3
const CONCURRENCY = 8
const RECOVERY_MAX_MS = 15_000

export interface ScenarioOptions {
  seed: string
  seconds: number
  /** Called every 10 s. */
  onProgress?: (attempts: readonly Attempt[], injected: readonly InjectedFault[]) => void
}

export async function runScenario(
  t: Test,
  deployment: Deployment,
  options: ScenarioOptions,
): Promise<History> {
  const { nodes, database, adminKeys, archivable, edges, workspace } = deployment
  const random = createRandom(options.seed)
  const attempts: Attempt[] = []
  const injected: InjectedFault[] = []
  const calls = createCalls(attempts, edges[0] as (typeof edges)[number])
  const clients = createWorkers()
  const injectors = createWorkers()

  const revokeAsOperator = async (id: string): Promise<boolean> => {
    const startMs = performance.now()
    const { code, stdout } = await run(t, ['admin', 'key', 'revoke', id, '--yes', '--json'], {
      ADIT_DATABASE_URL: database,
    })
    const response =
      code === 0 ? { status: 200, text: stdout, json: undefined, headers: new Headers() } : undefined
    const endMs = performance.now()
    attempts.push({ kind: 'operator.revoke', node: 'operator', startMs, endMs, revokes: id, response })
    return code === 0
  }

  const services = await openServicesOn(database)
  const actingAsOperator = { ...services, actor: operator, workspaceId: deployment.workspaceId }

  const createExpiring = async (name: string, lifetimeMs: number): Promise<Key | undefined> => {
    const startMs = performance.now()
    const expiresAt = new Date(Date.now() + lifetimeMs).toISOString()
    const key = await createKey(actingAsOperator, { label: name, expiresAt }).catch(() => undefined)
    // The wall clock first: if this process waits for a processor in between, the expiry counts as later, not
    // earlier.
    const wallMs = Date.now()
    const endMs = performance.now()
    const response = key && { status: 201, text: JSON.stringify(key), json: key, headers: new Headers() }
    attempts.push({
      kind: 'operator.create',
      node: 'operator',
      startMs,
      endMs,
      idempotencyKey: name,
      ...(key && { expiresMs: endMs + Date.parse(key.expiresAt as string) - wallMs }),
      response,
    })
    return key
  }

  const { created } = startKeyLifecycles({
    nodes,
    calls,
    workers: clients,
    adminKeys,
    random: random.fork('keys'),
    revokeAsOperator,
    createExpiring,
  })
  const reporting = startReporting({
    nodes,
    calls,
    workers: clients,
    edges,
    workspace,
    random: random.fork('edges'),
  })
  const archiving = startArchiving({
    nodes,
    calls,
    workers: clients,
    attempts,
    workspaces: archivable,
    services,
    random: random.fork('archiving'),
  })
  for (let index = 0; index < PROBERS; index++) {
    const own = random.fork(`prober-${index}`)
    clients.loop(async () => {
      await sleep(own.between(5, 60))
      const key = created.length > 0 && own.chance(0.9) ? own.pick(created.slice(-50)) : own.pick(adminKeys)
      const node = own.pick(nodes)
      await (own.chance(0.05)
        ? calls.readUsage(node, own.pick(adminKeys))
        : own.pick(Object.values(calls.probes))(node, key))
    })
  }
  deployment.schedules.forEach((schedule, index) => {
    startInjection(injectors, injected, schedule, random.fork(`schedule-${index}`))
  })

  const endsAt = performance.now() + options.seconds * 1_000
  while (performance.now() < endsAt) {
    await sleep(Math.min(10_000, endsAt - performance.now()))
    options.onProgress?.(attempts, injected)
  }
  await extendUntil(
    () => hasEnoughRevocations(attempts, options.seconds) && hasRestored(attempts) && injected.length > 0,
  )
  await Promise.all([clients.stop(), injectors.stop()])
  await archiving.settle()
  await services.store.close()
  await Promise.all(nodes.map((node) => until(`${node.name} is ready`, () => isReady(node), RECOVERY_MAX_MS)))

  const quiescentMs = performance.now()
  const counted = await reporting.settle()
  const archivableKeys = archivable.flatMap(({ keys }) => keys)
  await verifyAll(nodes, [...keysOf(attempts, adminKeys), ...archivableKeys], calls)
  const node = random.pick(nodes)
  const key = random.pick(adminKeys)
  const { totalBytes, eventCount } = (await retryUntilResponse(() => calls.readUsage(node, key))).json
  return {
    nodes: nodes.map(({ name }) => name),
    initialKeyIds: adminKeys.map(({ id }) => id),
    archivable: new Map(archivable.flatMap(({ slug, keys }) => keys.map(({ id }) => [id, slug]))),
    attempts,
    injected,
    quiescentMs,
    listed: (await retryUntilResponse(() => calls.listAll(node, key))).json.tokens,
    usage: { reported: { bytes: totalBytes, events: eventCount }, counted },
    documents: {
      publicA: await fetchDocument(node, apis.publicA.prefix),
      edge: await fetchDocument(node, apis.edge.prefix),
    },
  }
}

/** Every key whose creation was acknowledged. */
const keysOf = (attempts: readonly Attempt[], adminKeys: readonly Key[]): Key[] => {
  const created = attempts.filter(
    (attempt) =>
      (attempt.kind === 'tokens.create' || attempt.kind === 'operator.create') && isAcknowledged(attempt),
  )
  const keys = created.map(({ response }): [string, Key] => [response?.json.id, response?.json])
  return [...adminKeys, ...new Map(keys).values()]
}

/** Each key on each node. */
async function verifyAll(
  nodes: readonly Node[],
  keys: readonly Key[],
  calls: ReturnType<typeof createCalls>,
) {
  const requests = keys.flatMap((key) => nodes.map((node) => () => calls.probes.verify(node, key)))
  const workers = Array.from({ length: CONCURRENCY }, async () => {
    for (let send = requests.pop(); send; send = requests.pop()) await retryUntilResponse(send)
  })
  await Promise.all(workers)
}

const isReady = async (node: Node) =>
  (await fetch(`${node.url}/readyz`).catch(() => undefined))?.status === 200

const fetchDocument = async (node: Node, prefix: string): Promise<Document> =>
  (await (await fetch(`${node.url}${prefix}/openapi.json`)).json()) as Document
