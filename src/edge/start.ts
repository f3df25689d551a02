// The tunnel edge on one port: public requests by host name (ingress), and the control API for tunnel clients
// under /.adit/. Constructs the parts of an edge and connects them.
import type { Socket } from 'node:net'
import type { EdgeSources } from '../lib/metrics/edge-metrics.ts'
import { listenUrl } from '../lib/net/listen-url.ts'
import type { TunnelType } from '../tunnel-protocol/protocol.ts'
import { type AdmitTunnel, createAdmission } from './admission/admit.ts'
import { TlsAsk } from './certificates/tls-ask.ts'
import { Readiness } from './control-api/readiness.ts'
import { createControlApi } from './control-api/routes.ts'
import { startNameClaims } from './control-plane/reporter.ts'
import { createCore, type EdgeCore } from './core.ts'
import { type ClientAddresses, createClientAddresses } from './ingress/client-address.ts'
import { guardConnections, type IngressConnections } from './ingress/connections.ts'
import { createIngress, type Ingress } from './ingress/server.ts'
import { createEdgeServer, listen } from './listen.ts'
import type { EdgeOptions } from './options.ts'
import { createRouter } from './router.ts'
import { shutDown } from './shutdown.ts'
import { TcpTunnels } from './tcp/tunnels.ts'
import { MOVED_MS } from './tunnels/client.ts'

interface RunningEdge {
  /** The URL of the listener, for programs on this machine. */
  readonly url: string
  readonly metrics: Omit<EdgeSources, 'version'>
  /** Tells load balancers and tunnel clients that the edge will stop. It continues to serve requests. */
  announceStop(): void
  /** A worker is replaced if another one listens in its place: its clients connect there first. */
  stop(reason?: 'replaced'): Promise<void>
}

export async function startEdge(options: EdgeOptions): Promise<RunningEdge> {
  const { worker } = options
  let isReplaced = false
  const core = createCore(options)
  const server = createEdgeServer((request) => connections.shouldUpgrade(request))
  const listener = await listen(server, options, core)
  // Starts after the listener: a second process on the port must not replace this edge at the control plane.
  // Nothing may be awaited until the guard is attached, so that the first connection finds the edge complete.
  core.names = startNameClaims(options, core)
  const addresses = createClientAddresses(options)
  const ingress = createEdgeIngress(options, core, addresses)
  const tcpTunnels = createTcpTunnels(options, core, ingress, (socket) => connections.admit(socket))
  const readiness = createReadiness(core, () => connections.isCrowded)
  const controlApi = createControlApi({
    addresses,
    readiness,
    openTunnel: createEdgeAdmission(options, core, tcpTunnels, listener.address.port),
    tlsAsk: createTlsAsk(options, core),
  })
  const connections: IngressConnections = guardConnections(server, {
    addresses,
    onConnectionsLimited: options.onConnectionsLimited,
    ...createRouter(controlApi, ingress, () => isReplaced),
  })
  // Other workers may learn later where the client is now.
  worker?.primary.onDrain((id) => setTimeout(() => core.registry.drainMoved(id), MOVED_MS).unref())
  await listener.allListening

  return {
    url: listenUrl(options.host, listener.address),
    metrics: createMetrics(options, core),
    announceStop() {
      readiness.drain()
      core.registry.goAway()
    },
    stop(reason) {
      isReplaced = reason === 'replaced'
      return shutDown({ ...options, core, server, listener, connections, tcpTunnels, readiness }, isReplaced)
    },
  }
}

const createEdgeIngress = (
  { publicEndpoint, worker }: EdgeOptions,
  { registry, verifier, traffic, instruments, forwarding }: EdgeCore,
  addresses: ClientAddresses,
): Ingress =>
  createIngress({
    registry,
    addresses,
    instruments,
    traffic,
    scheme: publicEndpoint?.scheme ?? 'http',
    sharesPorts: worker !== undefined,
    remote: forwarding.remote,
    quotaReachedUntil: (workspace) => verifier.quotaReachedUntil(workspace),
  })

const createEdgeAdmission = (
  options: EdgeOptions,
  { registry, verifier, names }: EdgeCore,
  tcpTunnels: TcpTunnels,
  listeningPort: number,
): AdmitTunnel =>
  createAdmission({
    registry,
    verifier,
    names,
    meter: options.meter,
    tcpTunnels: names || options.localPorts ? tcpTunnels : undefined,
    publicUrl: createPublicUrl(options, listeningPort),
  })

const createTcpTunnels = (
  options: EdgeOptions,
  { forwarding, verifier }: EdgeCore,
  ingress: Ingress,
  admit: IngressConnections['admit'],
) =>
  new TcpTunnels({
    ...options,
    cluster: forwarding.peers && verifier.cluster,
    address: options.tcpHost || options.host,
    onConnection(host: string, socket: Socket) {
      const release = admit(socket)
      if (!release) return
      socket.once('close', release)
      ingress.onTcpConnection(host, socket)
    },
  })

const createPublicUrl =
  ({ publicEndpoint }: EdgeOptions, listeningPort: number) =>
  (host: string, type: TunnelType, tcpPort: number | undefined) => {
    if (type === 'tcp') return `tcp://${host}${tcpPort === undefined ? '' : `:${tcpPort}`}`
    const { scheme, port } = publicEndpoint ?? { scheme: 'http', port: listeningPort }
    return `${scheme}://${host}${port === undefined ? '' : `:${port}`}`
  }

const createTlsAsk = ({ worker, ...options }: EdgeOptions, { registry, verifier }: EdgeCore) =>
  worker
    ? { ask: (domain: string) => worker.primary.askTls(domain) }
    : new TlsAsk({ ...options, registry, findHost: (host) => verifier.findHost(host) })

const createReadiness = ({ traffic, verifier, forwarding, buffers }: EdgeCore, isCrowded: () => boolean) =>
  new Readiness({
    isConnected: () => traffic.mayCarry() && verifier.isUpToDate(),
    isClusterKnown: () => !forwarding.peers || verifier.cluster?.isComplete === true,
    isOverloaded: () => isCrowded() || buffers.isNearlyFull,
  })

const createMetrics = (
  { meter }: EdgeOptions,
  { instruments, registry, buffers, forwarding: { peers }, verifier }: EdgeCore,
): RunningEdge['metrics'] => ({
  instruments,
  openTunnels: () => registry.tunnels(),
  clients: () => registry.clients(),
  bufferedBytes: () => buffers.bytes,
  peers: peers && (() => peers.connections),
  isUpToDate: verifier.isUpToDate,
  spoolBytes: meter && (() => meter.spoolBytes()),
})
