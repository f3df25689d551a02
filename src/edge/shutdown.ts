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
/** How long clients may take to open their tunnels at other edges, which forward to this one meanwhile. */
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
  if (!isReplaced) await moveToEdges(core)
  // From now on, other edges or workers accept the clients. The control plane may be unreachable.
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

/** Other edges forward to this one until its tunnels are open there, too. */
async function moveToEdges(core: EdgeCore): Promise<void> {
  const { registry, forwarding } = core
  const isElsewhere = ({ type, address: { host } }: Tunnel) => type === 'tcp' || isAtOtherEdge(core, host)
  if (forwarding.peers && hasClients(registry)) await moveTunnels(core, isElsewhere, MOVE_MS)
  registry.release()
}

/** Other workers and edges forward to this worker until its tunnels are open there, too. */
async function moveToWorkers({ core, connections, worker }: ShutdownOptions): Promise<void> {
  const { registry, forwarding } = core
  const deadline = performance.now() + REPLACED_GRACE_MS
  forwarding.replace()
  const isAtOtherWorker = (host: string) => (worker?.primary.otherWorkers.findEdges(host).length ?? 0) > 0
  const isElsewhere = ({ address: { host } }: Tunnel) => isAtOtherWorker(host) || isAtOtherEdge(core, host)
  await moveTunnels(core, isElsewhere, REPLACED_GRACE_MS)
  // Those that have moved to another edge have not been closed yet.
  for (const client of registry.clients()) client.drain()
  await waitWhile(() => connections.openCount() > 0, deadline - performance.now())
}

async function moveTunnels(
  { registry }: EdgeCore,
  isElsewhere: (tunnel: Tunnel) => boolean,
  timeoutMs: number,
): Promise<void> {
  const areSomeOnlyHere = () => !registry.tunnels().every(isElsewhere)
  if (areSomeOnlyHere()) {
    await waitWhile(areSomeOnlyHere, timeoutMs)
    await sleep(MOVED_MS)
  }
  registry.withdraw()
  await sleep(MOVED_MS)
}

const isAtOtherEdge = ({ verifier: { cluster } }: EdgeCore, host: string) =>
  cluster?.findEdges(host).some((id) => cluster.peer(id)) === true
