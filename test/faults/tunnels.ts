// Keys with tunnels at edges that are killed, stopped and cut off from the control plane: each key is used by
// visitors until after its revocation.
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { openTunnel } from '../../src/tunnel/index.ts'
import { caller, operator } from '../support/api/server.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { startTunnelEdge } from '../support/edges/tunnels.ts'
import { type Relay, startRelay } from '../support/network/relay.ts'
import { freePort } from '../support/processes/ports.ts'
import type { Random } from '../support/random.ts'
import { until } from '../support/until.ts'
import { type Carried, carriedAfterRevocation } from './checker/carried.ts'
import type { InjectedFault, Violation } from './checker/history.ts'
import { type Deployment, openServicesOn } from './deployments.ts'
import { type FaultSchedule, startInjection } from './injection.ts'
import { startTimedServer, startVisitors } from './scenario/visitors.ts'
import { createWorkers } from './scenario/workers.ts'

const EDGES = 3
const CONCURRENT = 4
/** A revocation waits 25.3 s for an edge that is gone. */
const REVOKE_TIMEOUT_MS = 40_000
/** Shorter and longer than the lease of an edge, which is 25 s. */
const FAULT_MS = [500, 3_000, 28_000] as const

interface TunnelEdge {
  readonly name: string
  edge: Awaited<ReturnType<typeof startTunnelEdge>>
  readonly relay: Relay
}

async function startEdges(t: Test, { nodes, edges }: Deployment): Promise<TunnelEdge[]> {
  return Promise.all(
    edges.slice(0, EDGES).map(async ({ token }, index) => {
      const relay = await startRelay(t, nodes[index % nodes.length]?.url as string)
      const env = {
        ADIT_URL: relay.url,
        ADIT_EDGE_KEY: token,
        ADIT_EDGE_FOLDER: join(createFolder(t), 'edge'),
        ADIT_EDGE_PEER_PORT: String(await freePort()),
        // All visitors have one address.
        ADIT_EDGE_TRUSTED_PROXIES: '127.0.0.1',
      }
      return { name: `edge-${index + 1}`, relay, edge: await startTunnelEdge(t, { env }) }
    }),
  )
}

/** One edge at a time, so that tunnels go on at others. */
const edgeFaults = (edges: readonly TunnelEdge[]): FaultSchedule => {
  const toOne = (kind: string, apply: (edge: TunnelEdge, ms: number) => Promise<void>) =>
    FAULT_MS.map((ms) => ({
      kind: `${kind} for ${ms} ms`,
      inject: (random: Random) => ({ done: apply(random.pick(edges), ms) }),
    }))
  const types = [
    ...toOne('edge stopped', async ({ edge }, ms) => {
      edge.child.kill('SIGSTOP')
      await sleep(ms)
      edge.child.kill('SIGCONT')
    }),
    ...toOne('edge cut off', async ({ relay }, ms) => {
      relay.cut()
      await sleep(ms)
      relay.mend()
    }),
    ...toOne('edge stalled', async ({ relay }, ms) => {
      relay.hold()
      await sleep(ms)
      relay.release()
    }),
    ...toOne('edge killed', async (killed, ms) => {
      killed.edge.child.kill('SIGKILL')
      await killed.edge.ended
      await sleep(Math.min(ms, 1_000))
      killed.edge = await killed.edge.restart()
    }).slice(0, 1),
  ]
  return { types, gap: [200, 1_500] }
}

interface TunnelHistory {
  readonly carried: Carried[]
  readonly injected: InjectedFault[]
  /** When the response to the revocation of a key arrived, and how long it took. */
  readonly revocations: { keyId: string; atMs: number; tookMs: number }[]
  readonly violations: Violation[]
}

export async function runTunnels(
  t: Test,
  deployment: Deployment,
  { seconds, random }: { seconds: number; random: Random },
): Promise<TunnelHistory> {
  const { nodes, database, adminKeys, workspaceId } = deployment
  const edges = await startEdges(t, deployment)
  const target = await startTimedServer(t)
  const services = await openServicesOn(database)
  const ctx = { ...services, actor: operator, workspaceId }
  const workers = createWorkers()
  const injectors = createWorkers()
  const carried: Carried[] = []
  const injected: InjectedFault[] = []
  const revocations: TunnelHistory['revocations'] = []

  async function revoke(keyId: string): Promise<boolean> {
    const startMs = performance.now()
    const call = caller(`${random.pick(nodes).url}/api/v1`, random.pick(adminKeys).token)
    const signal = AbortSignal.timeout(REVOKE_TIMEOUT_MS)
    const { status } = await call('DELETE', `/tokens/${keyId}`, { signal })
    if (status !== 200) throw new Error(`DELETE /tokens/${keyId} returned ${status}`)
    const atMs = performance.now()
    revocations.push({ keyId, atMs, tookMs: atMs - startMs })
    return true
  }

  async function runKey(name: string): Promise<void> {
    const own = random.fork(name)
    const key = await createKey(ctx, { label: name })
    const opening = new AbortController()
    const giveUp = setTimeout(() => opening.abort(), 5_000)
    const { edge } = own.pick(edges)
    const options = { edge: edge.url, edges: 1, apiKey: key.token, target, name, drainMs: 0 }
    const tunnel = await openTunnel({ ...options, signal: opening.signal }).catch(() => undefined)
    clearTimeout(giveUp)
    if (!tunnel) return
    tunnel.on('close', () => undefined)
    const host = new URL(tunnel.url).hostname
    const leave = startVisitors({ edges, workers, carried, random: own }, { keyId: key.id, host })
    await sleep(own.between(300, 2_500))
    await revoke(key.id)
    // Whatever an edge still has would arrive now.
    await sleep(own.between(1_000, 4_000))
    leave()
    await tunnel.close().catch(() => undefined)
  }

  for (let index = 0; index < CONCURRENT; index++)
    workers.loop((iteration) => runKey(`key-${index}-${iteration}`))
  startInjection(injectors, injected, edgeFaults(edges), random.fork('faults'))
  await sleep(seconds * 1_000)
  await injectors.stop()
  await workers.stop()
  await services.store.close()
  for (const { edge } of edges)
    await until('the edge responds', async () => (await fetch(`${edge.url}/.adit/health`)).ok)
  const revokedAt = new Map(revocations.map(({ keyId, atMs }) => [keyId, atMs]))
  return { carried, injected, revocations, violations: carriedAfterRevocation(carried, revokedAt) }
}
