// Many nodes without HTTP: real change followers and directories in this process, each with its own control
// connection to a real PostgreSQL. Keys are revoked while links stall, nodes are restarted and PostgreSQL
// crashes, which loses acknowledgments. The history is checked like that of real nodes.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Context, Services } from '../../src/server/domain/context.ts'
import { type CreatedKey, createKey, revoke } from '../../src/server/domain/keys/lifecycle.ts'
import { createWorkspace } from '../../src/server/domain/workspaces/manage.ts'
import { listNodes } from '../../src/server/store/change-log/nodes.ts'
import { openStore } from '../../src/server/store/engine/store.ts'
import { type ChangeFollower, startChangeFollower } from '../../src/server/verification/change-follower.ts'
import { type CredentialVerifier, createCredentialVerifier } from '../../src/server/verification/verify.ts'
import { operator } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { type Cluster, createCluster } from '../support/databases/postgres.ts'
import { type Relay, startRelay } from '../support/network/relay.ts'
import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import type { Attempt } from './checker/history.ts'
import { openServicesOn } from './deployments.ts'
import { extendUntil, hasEnoughRevocations } from './scenario/extension.ts'
import { createWorkers } from './scenario/workers.ts'

const RELAYS = 5
const REVOKERS = 4
const WARMED = 8
/** Longer than a lease. */
const STALL_MS = [2_300, 3_000] as const
const GAP_MS = [300, 1_200] as const
/** Longer, because the next revocation waits for the killed node. */
const RESTART_GAP_MS = [1_500, 4_000] as const
const QUIET_MS = 200
const CUT_MAX_MS = 500

interface FollowersHistory {
  attempts: Attempt[]
  initialKeyIds: string[]
  archivable: ReadonlyMap<string, string>
  faults: Record<'stall' | 'crash' | 'restart', number>
  /** Acknowledgments that were undone by crashes of PostgreSQL. */
  lostAcknowledgments: number
}

interface SimulatedNode {
  name: string
  follower: ChangeFollower
  verifier: CredentialVerifier
  /** Like SIGKILL: its row stays. */
  kill(): Promise<void>
}

export interface FollowersOptions {
  followers: number
  seconds: number
  random: Random
}

export async function runFollowers(t: Test, options: FollowersOptions): Promise<FollowersHistory> {
  const { random } = options
  // Processes are killed, machines are not. Without the WAL writer, acknowledgments stay in memory for long.
  const cluster = await createCluster(['fsync=off', 'wal_writer_delay=10s'])
  atEnd(t, () => cluster.remove())
  await cluster.start()
  const services = await openServicesOn(`${cluster.url}/postgres`)
  atEnd(t, () => services.store.close())
  const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
  const ctx: Context = { ...services, actor: operator, workspaceId }
  const relays = await Promise.all(Array.from({ length: RELAYS }, () => startRelay(t, cluster.url)))
  const start = (index: number) => startNode(services, relays[index % RELAYS] as Relay)
  const nodes = await Promise.all(Array.from({ length: options.followers }, (_, index) => start(index)))
  atEnd(t, () => Promise.all(nodes.map((node) => node.kill())))
  await until('all are up to date', () => nodes.every(({ follower }) => follower.isUpToDate()))

  const history: FollowersHistory = {
    attempts: [],
    initialKeyIds: [],
    archivable: new Map(),
    faults: { stall: 0, crash: 0, restart: 0 },
    lostAcknowledgments: 0,
  }
  let isQuiet = false
  const clients = createWorkers()
  const injectors = createWorkers()
  for (let index = 0; index < REVOKERS; index++)
    clients.loop(async (iteration) => {
      while (isQuiet) await sleep(20)
      await runLifecycle(ctx, nodes, history, random.fork(`revoker-${index}-${iteration}`))
    })
  injectors.loop(async (iteration) => {
    await sleep(random.between(...GAP_MS))
    if (iteration % 2 === 0) {
      // Every durable commit makes the acknowledgments before it durable too, so the crash follows the last
      // acknowledgments of a revocation, without a commit in between. An earlier revocation waits for killed
      // nodes and deletes their rows.
      isQuiet = true
      await sleep(QUIET_MS)
      for (const phase of ['before', 'at'])
        await runLifecycle(ctx, nodes, history, random.fork(`${phase}-crash-${iteration}`))
      // Cut, so that no node acknowledges again before its row is read and keys are revoked.
      for (const relay of relays) relay.cut()
      await crash(cluster, services, history)
      isQuiet = false
      await sleep(random.between(0, CUT_MAX_MS))
      for (const relay of relays) relay.mend()
      return
    }
    const relay = random.pick(relays)
    relay.hold()
    await sleep(random.between(...STALL_MS))
    relay.release()
    history.faults.stall += 1
  })
  injectors.loop(async () => {
    await sleep(random.between(...RESTART_GAP_MS))
    if (isQuiet) return
    const index = random.whole(0, nodes.length)
    await nodes[index]?.kill()
    nodes[index] = await start(index)
    history.faults.restart += 1
  })
  await sleep(options.seconds * 1_000)
  await extendUntil(
    () =>
      hasEnoughRevocations(history.attempts, options.seconds) &&
      history.faults.stall > 0 &&
      history.lostAcknowledgments > 0,
  )
  await Promise.all([clients.stop(), injectors.stop()])
  return history
}

async function startNode(services: Services, relay: Relay): Promise<SimulatedNode> {
  const { store: shared, clock, ids } = services
  const url = `postgres://adit@127.0.0.1:${relay.port}/postgres`
  const own = openStore(
    { engine: 'postgres', url },
    { onLostConnection() {}, onStorageFault() {}, onStorageRecovered() {} },
  )
  // Requests share a pool, because PostgreSQL has too few connections for a pool per node.
  const store = { ...own, db: shared.db, transaction: shared.transaction }
  const name = ids('node')
  const identity = { id: name, host: 'simulated', pid: process.pid, version: '0' }
  const follower = await startChangeFollower(store, clock, identity, { onFailure() {}, onRecovery() {} })
  const lastUsed = { record() {}, stop: async () => ({ lost: 0 }) }
  const verifier = createCredentialVerifier({ store, follower, lastUsed, keysMax: 1_000 })
  return { name, follower, verifier, kill: () => own.close() }
}

/** Without a checkpoint, as in a power failure. Counts the rows that have an older position afterwards. */
async function crash(cluster: Cluster, { store }: Services, history: FollowersHistory): Promise<void> {
  const before = new Map((await listNodes(store.db)).map((row) => [row.id, row.position.sequence]))
  await cluster.stop('kill')
  await cluster.start()
  // The first attempts may still use connections from before the crash.
  let after: Awaited<ReturnType<typeof listNodes>> = []
  await until('the database is back', async () => {
    after = await listNodes(store.db).catch(() => [])
    return after.length > 0
  })
  for (const { id, position } of after)
    if (position.sequence < (before.get(id) ?? 0)) history.lostAcknowledgments += 1
  history.faults.crash += 1
}

/** A key that some nodes have cached is revoked. From then on every node has to reject it. */
async function runLifecycle(
  ctx: Context,
  nodes: readonly SimulatedNode[],
  history: FollowersHistory,
  random: Random,
): Promise<void> {
  const key = await createKey(ctx).catch(() => undefined)
  // The database is down.
  if (!key) return sleep(100)
  history.initialKeyIds.push(key.id)
  const probe = (node: SimulatedNode) => verify(node, key, history)
  await Promise.all(random.shuffled(nodes).slice(0, WARMED).map(probe))
  const during = sleep(random.between(0, 20)).then(() => probe(random.pick(nodes)))
  const startMs = performance.now()
  const isAcknowledged = await revoke(ctx, key.id).then(
    () => true,
    () => false,
  )
  history.attempts.push({
    kind: 'operator.revoke',
    node: 'operator',
    startMs,
    endMs: performance.now(),
    revokes: key.id,
    response: isAcknowledged ? responseOf(undefined) : undefined,
  })
  await during
  await Promise.all(nodes.map(probe))
}

async function verify({ name, verifier }: SimulatedNode, key: CreatedKey, { attempts }: FollowersHistory) {
  const startMs = performance.now()
  const result = await Promise.resolve(verifier.verifyKey(key.token)).catch(() => undefined)
  const response = result && responseOf({ valid: result.valid })
  attempts.push({
    kind: 'keys.verify',
    node: name,
    startMs,
    endMs: performance.now(),
    keyId: key.id,
    response,
  })
}

const responseOf = (json: unknown) => ({ status: 200, headers: new Headers(), text: '', json })
