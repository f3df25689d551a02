// Stops an edge: sends tunnel clients elsewhere, completes requests in progress, and closes what is left.
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Listener } from '../lib/net/listener.ts'
import type { Readiness } from './control-api/readiness.ts'
import type { EdgeCore } from './core.ts'
import type { IngressConnections } from './ingress/connections.ts'
import type { EdgeOptions } from './options.ts'
import type { TcpTunnels } from './tcp/tunnels.ts'
import { MOVED_MS } from './tunnels/client.ts'
import type { Registry } from './tunnels/registry.ts'
import type { Tunnel } from './tunnels/tunnel.ts'

const GRACE_PERIOD_MS = 5_000
/** A worker that is replaced also waits for idle connections: a request could be on its way. */
const REPLACED_GRACE_MS = 10_000
/** How long clients and other edges may take to connect elsewhere; they are served meanwhile. */
const MOVE_MS = 2_000
const POLL_MS = 20

interface ShutdownOptions extends Pick<EdgeOptions, 'meter' | 'localPorts' | 'worker'> {
  readonly core: EdgeCore
  readonly server: Server
  readonly listener: Listener
  readonly connections: IngressConnections
  readonly tcpTunnels: TcpTunnels
  readonly readiness: Readiness
}

export async function shutDown(options: ShutdownOptions, isReplaced: boolean): Promise<void> {
  const { core, server, listener, connections, tcpTunnels, readiness } = options
  const { registry, verifier, forwarding, names } = core
  if (!isReplaced) readiness.drain()
  // Drains: accepts no connections, and waits for requests in progress during the grace period.
  const closed = listener.close()
  registry.goAway()
  if (!isReplaced) await moveToEdges(options)
  // Other clients may have the names now, and other workers the clients. The control plane may be
  // unreachable.
  const released = names?.release()
  if (isReplaced) await moveToWorkers(options)
  tcpTunnels.drain()
  await closed
  server.close()
  await waitWhile(() => connections.busyCount() > 0 || forwarding.forwarded > 0, GRACE_PERIOD_MS)
  verifier.close()
  registry.closeAll()
  forwarding.close()
  server.closeAllConnections()
  await options.meter?.stop()
  await released
  await names?.stop()
  await options.localPorts?.close()
}

async function waitWhile(condition: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (condition() && performance.now() < deadline) await sleep(POLL_MS)
}

const hasClients = (registry: Registry) => registry.clients().some(() => true)

/** Other edges forward to this one until its tunnels, also those of other workers, are open there, too. */
async function moveToEdges({ core, worker }: ShutdownOptions): Promise<void> {
  const { registry, forwarding } = core
  const hosts = () => [...httpHosts(registry), ...(worker?.primary.otherWorkers.hosts() ?? [])]
  if (forwarding.peers && hosts().length > 0) {
    await waitUntilMoved(() => hosts().every((host) => isAtOtherEdge(core, host)), MOVE_MS)
    registry.withdraw()
    await sleep(MOVED_MS)
  }
  registry.release()
}

/** Other workers and edges forward to this worker until its tunnels are open there, too. */
async function moveToWorkers({ core, connections, worker }: ShutdownOptions): Promise<void> {
  const { registry, forwarding } = core
  const deadline = performance.now() + REPLACED_GRACE_MS
  forwarding.sendPeersElsewhere()
  const isAtOtherWorker = (host: string) => (worker?.primary.otherWorkers.findEdges(host).length ?? 0) > 0
  const isElsewhere = ({ address: { host } }: Tunnel) => isAtOtherWorker(host) || isAtOtherEdge(core, host)
  await Promise.all([
    waitUntilMoved(() => registry.tunnels().every(isElsewhere), REPLACED_GRACE_MS),
    forwarding.peers && sleep(MOVE_MS),
  ])
  for (const client of registry.clients()) client.drain()
  const isBusy = () => hasClients(registry) || connections.openCount() > 0 || forwarding.forwarded > 0
  await waitWhile(isBusy, deadline - performance.now())
}

async function waitUntilMoved(isMoved: () => boolean, timeoutMs: number): Promise<void> {
  if (isMoved()) return
  await waitWhile(() => !isMoved(), timeoutMs)
  await sleep(MOVED_MS)
}

const httpHosts = (registry: Registry) =>
  registry
    .tunnels()
    .filter(({ type }) => type === 'http')
    .map(({ address }) => address.host)

const isAtOtherEdge = ({ verifier: { cluster } }: EdgeCore, host: string) =>
  cluster?.findEdges(host).some((id) => cluster.peer(id)) === true
