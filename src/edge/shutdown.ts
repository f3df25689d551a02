// Stops an edge: sends tunnel clients elsewhere, completes requests in progress, and closes what is left.
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Listener } from '../lib/net/listener.ts'
import type { Readiness } from './control-api/readiness.ts'
import type { EdgeCore } from './core.ts'
import type { IngressConnections } from './ingress/connections.ts'
import type { EdgeOptions } from './options.ts'
import type { TcpTunnels } from './tcp/tunnels.ts'
import type { Registry } from './tunnels/registry.ts'
import type { Tunnel } from './tunnels/tunnel.ts'

const GRACE_PERIOD_MS = 5_000
/** A worker that is replaced also waits for idle connections: a request could be on its way. */
const REPLACED_GRACE_MS = 10_000
/** How long clients may take to open their tunnels at other edges, which forward to this one meanwhile. */
const MOVE_MS = 2_000
/** How long other edges may take to learn where the tunnels are. */
const MOVED_MS = 500
const POLL_MS = 20

interface ShutdownOptions extends Pick<EdgeOptions, 'meter' | 'localPorts'> {
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
  if (forwarding.peers && !isReplaced) await waitUntilMoved(core)
  registry.release()
  const released = names?.release()
  if (isReplaced) {
    await released
    await waitWhile(() => hasClients(registry) || connections.openCount() > 0, REPLACED_GRACE_MS)
  }
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

const hasClients = (registry: Registry) => !registry.clients()[Symbol.iterator]().next().done

/** Waits until the tunnels are open at other edges, too, which forward to this one meanwhile. */
async function waitUntilMoved({ registry, verifier: { cluster } }: EdgeCore): Promise<void> {
  const isOnlyHere = ({ type, address: { host } }: Tunnel) =>
    type === 'http' && !cluster?.findEdges(host).some((id) => cluster.peer(id))
  const areSomeOnlyHere = () => registry.tunnels().some(isOnlyHere)
  if (!areSomeOnlyHere()) return
  await waitWhile(areSomeOnlyHere, MOVE_MS)
  await sleep(MOVED_MS)
}
