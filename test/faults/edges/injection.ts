// Faults of a cluster of edges, one at a time. The next one follows when everything has recovered.
import { setTimeout as sleep } from 'node:timers/promises'
import { fetchHost } from '../../support/edges/tunnels.ts'
import type { Relay } from '../../support/network/relay.ts'
import type { Random } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { type EdgeCluster, type TestEdge, untilOpen } from './deployment.ts'

/**
 * Below and above the 3 s after which edges close a silent connection, and the 2 s of the lease of a node.
 */
const LASTS_MS = [1_000, 6_000] as const

export interface InjectedFault {
  readonly kind: string
  readonly target: string
  readonly startMs: number
  /** Everything had recovered. */
  endMs: number
  /** An edge was killed. */
  readonly killed?: TestEdge
}

interface FaultType {
  readonly kind: string
  /** Calls `onStart` when the fault happens, and resolves when its cause is gone. */
  inject(cluster: EdgeCluster, random: Random, onStart: OnStart): Promise<void>
}

type OnStart = (target: string, killed?: TestEdge) => void

const ofGroup = ({ edges }: EdgeCluster) => edges.filter(({ group }) => group === 'default')

const pause = (random: Random) => sleep(random.between(...LASTS_MS))

const withWorkers = ({ edges }: EdgeCluster) =>
  edges.find((edge) => edge.processes().workers.length > 0) as TestEdge

async function stop(processes: readonly number[], random: Random): Promise<void> {
  for (const pid of processes) process.kill(pid, 'SIGSTOP')
  await pause(random)
  for (const pid of processes) process.kill(pid, 'SIGCONT')
}

function takeOut(edge: TestEdge): void {
  edge.isOut = true
  edge.outage.abort()
}

/** The load balancer uses an edge when it serves all tunnels. */
export async function takeIn(cluster: EdgeCluster, edge: TestEdge): Promise<void> {
  for (const { host, group, workspace } of cluster.tunnels)
    if (group === edge.group)
      await until(`${edge.name} serves ${host}`, async () => {
        cluster.checks.set(workspace, (cluster.checks.get(workspace) ?? 0) + 1)
        const status = await fetchHost(edge, host, { path: '/0' }).then(
          (response) => response.status,
          () => 0,
        )
        return status === 200 || status === 401
      })
  // Requests that are in progress have to notice the next outage.
  if (edge.outage.signal.aborted) edge.outage = new AbortController()
  edge.isOut = false
}

const edgeLink = (
  kind: string,
  pick: (edge: TestEdge) => Relay,
  cut: (relay: Relay) => void,
  mend: (relay: Relay) => void,
): FaultType => ({
  kind,
  async inject(cluster, random, onStart) {
    const edge = random.pick(ofGroup(cluster))
    const relay = pick(edge)
    onStart(edge.name)
    cut(relay)
    await pause(random)
    mend(relay)
  },
})

const reset = [(relay: Relay) => relay.cut(), (relay: Relay) => relay.mend()] as const
const stall = [(relay: Relay) => relay.hold(), (relay: Relay) => relay.release()] as const

const types: FaultType[] = [
  {
    kind: 'edge killed',
    async inject(cluster, random, onStart) {
      const edge = random.pick(ofGroup(cluster))
      onStart(edge.name, edge)
      takeOut(edge)
      await edge.end('SIGKILL')
      await pause(random)
      await edge.start()
      await takeIn(cluster, edge)
    },
  },
  {
    kind: 'edge stopped',
    async inject(cluster, random, onStart) {
      const edge = random.pick(ofGroup(cluster))
      onStart(edge.name)
      takeOut(edge)
      const { main, workers } = edge.processes()
      await stop([main, ...workers], random)
      await takeIn(cluster, edge)
    },
  },
  {
    kind: 'worker killed',
    async inject(cluster, random, onStart) {
      const edge = withWorkers(cluster)
      onStart(edge.name, edge)
      // Visitors find out by themselves that it has reset their connections.
      process.kill(random.pick(edge.processes().workers), 'SIGKILL')
      await until('two workers run', () => edge.processes().workers.length === 2)
      await takeIn(cluster, edge)
    },
  },
  {
    kind: 'worker stopped',
    async inject(cluster, random, onStart) {
      const edge = withWorkers(cluster)
      onStart(edge.name)
      takeOut(edge)
      await stop([random.pick(edge.processes().workers)], random)
      await takeIn(cluster, edge)
    },
  },
  {
    kind: 'primary stopped',
    async inject(cluster, random, onStart) {
      const edge = withWorkers(cluster)
      onStart(edge.name)
      await stop([edge.processes().main], random)
      await takeIn(cluster, edge)
    },
  },
  {
    kind: 'edges restarted in turn',
    async inject(cluster, random, onStart) {
      onStart('all')
      for (const edge of random.shuffled(ofGroup(cluster))) {
        // Visitors find out by themselves that it accepts no connections.
        await edge.end('SIGTERM')
        edge.isOut = true
        await edge.start()
        await takeIn(cluster, edge)
        await untilOpen(cluster)
      }
    },
  },
  edgeLink('edge cut off from the others', ({ links }) => links.peers, ...reset),
  edgeLink('connections from the others silent', ({ links }) => links.peers, ...stall),
  edgeLink('edge cut off from its clients', ({ links }) => links.clients, ...reset),
  edgeLink('connections of clients silent', ({ links }) => links.clients, ...stall),
  edgeLink('edge cut off from the control plane', ({ links }) => links.node, ...reset),
  edgeLink('connections to the control plane silent', ({ links }) => links.node, ...stall),
  {
    kind: 'node killed',
    async inject({ nodes }, random, onStart) {
      const node = random.pick(nodes)
      onStart(node.name)
      await node.kill()
      await pause(random)
      await node.start()
    },
  },
  {
    kind: 'node stopped',
    async inject({ nodes }, random, onStart) {
      const node = random.pick(nodes)
      onStart(node.name)
      node.pause()
      await pause(random)
      node.resume()
    },
  },
  {
    kind: 'node cut off from the database',
    async inject({ nodes }, random, onStart) {
      const node = random.pick(nodes)
      if (!node.database) return
      onStart(node.name)
      node.database.cut()
      await pause(random)
      node.database.mend()
    },
  },
]

/** Injects each type of fault, in any order, and again until the time is over. */
export async function injectFaults(
  cluster: EdgeCluster,
  random: Random,
  seconds: number,
  onRecovered: (fault: InjectedFault) => Promise<void>,
): Promise<InjectedFault[]> {
  const injected: InjectedFault[] = []
  const endAt = performance.now() + seconds * 1_000
  for (let round = 0; round === 0 || performance.now() < endAt; round++)
    for (const { kind, inject } of random.shuffled(types)) {
      if (round > 0 && performance.now() >= endAt) break
      let fault: InjectedFault | undefined
      await inject(cluster, random, (target, killed) => {
        const startMs = performance.now()
        fault = { kind, target, startMs, endMs: Number.POSITIVE_INFINITY, ...(killed && { killed }) }
        injected.push(fault)
      })
      if (!fault) continue
      await untilOpen(cluster)
      // Beyond what requests and connections from before may take.
      await sleep(random.between(500, 1_500))
      fault.endMs = performance.now()
      await onRecovered(fault)
    }
  return injected
}
