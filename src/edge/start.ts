// The tunnel edge on one port: public requests by host name (ingress), and the control API for tunnel clients
// under /.adit/.
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type {
  Meter,
  TunnelReporter,
  TunnelReporterOptions,
  Verifier,
  VerifierOptions,
} from '../edge-sdk/index.ts'
import { hashSecret } from '../lib/credentials/secret.ts'
import { EdgeInstruments } from '../lib/metrics/edge-instruments.ts'
import type { EdgeSources } from '../lib/metrics/edge-metrics.ts'
import type { ListenAddress } from '../lib/net/listen-error.ts'
import { listenUrl } from '../lib/net/listen-url.ts'
import { type Listener, startListener } from '../lib/net/listener.ts'
import { SharedBufferBudget } from '../tunnel-protocol/buffers/buffer-budget.ts'
import { createAdmission } from './admission/admit.ts'
import { NameClaims } from './admission/name-claims.ts'
import { EDGE_BUFFERED_BYTES_MAX } from './admission/workspace-load.ts'
import type { CertificateLimits } from './certificates/budget.ts'
import { TlsAsk } from './certificates/tls-ask.ts'
import { Readiness } from './control-api/readiness.ts'
import { createControlApi } from './control-api/routes.ts'
import { reverify } from './control-plane/reverification.ts'
import { type ClientAddressesOptions, createClientAddresses } from './ingress/client-address.ts'
import {
  guardConnections,
  type IngressConnections,
  type IngressConnectionsOptions,
} from './ingress/connections.ts'
import { createIngress } from './ingress/server.ts'
import type { Peers } from './peers/forwarding.ts'
import { createRouter } from './router.ts'
import { startPeers, startSiblings } from './start-peers.ts'
import { TcpTunnels, type TcpTunnelsOptions } from './tcp/tunnels.ts'
import { Traffic } from './traffic.ts'
import { TunnelFactory, type TunnelFactoryOptions } from './tunnels/factory.ts'
import { Registry, type RegistryOptions } from './tunnels/registry.ts'
import type { Tunnel } from './tunnels/tunnel.ts'
import type { PrimaryConnection } from './workers/connection.ts'
import { preferNear } from './workers/remote.ts'

const HEADERS_TIMEOUT_MS = 20_000
const IDLE_TIMEOUT_MS = 65_000
const KEEP_ALIVE_MS = 15_000
const SHUTDOWN_GRACE_MS = 5_000
/** A worker that is replaced also waits for idle connections: a request could be on its way. */
const REPLACED_GRACE_MS = 10_000
/** How long clients may take to open their tunnels at other edges, which forward to this one meanwhile. */
const MOVE_MS = 2_000
/** How long other edges may take to learn where the tunnels are. */
const MOVED_MS = 500
const DRAIN_POLL_MS = 20
/** Requests in progress may take this long after a quota is reached. */
const ABORT_DELAY_MS = 1_000

export interface EdgeOptions
  extends Pick<RegistryOptions, 'onOpened' | 'onClosed'>,
    Pick<TunnelFactoryOptions, 'onWrongPassword'>,
    Pick<TcpTunnelsOptions, 'localPorts' | 'onPortUnavailable'>,
    CertificateLimits,
    ClientAddressesOptions,
    Pick<IngressConnectionsOptions, 'onConnectionsLimited'> {
  readonly host: string
  readonly port: number
  /** Scheme and port of public URLs; if undefined, those of the listener. */
  readonly publicEndpoint: { scheme: 'http' | 'https'; port: number | undefined } | undefined
  /** The address on which TCP tunnels listen; `host` if it is empty. */
  readonly tcpHost: string
  /**
   * The edge closes tunnels on a revocation, and verifies all keys again when revocations may have been
   * missed.
   */
  startVerifier(
    callbacks: Pick<
      Required<VerifierOptions>,
      'onRevoked' | 'onArchived' | 'onQuota' | 'onReset' | 'onTunnelsChanged'
    >,
  ): Verifier
  /** Where other edges of the cluster connect; undefined if this edge neither accepts nor forwards. */
  readonly peerListener?: ListenAddress | undefined
  /** Undefined without a control plane, and so is the reporter. */
  readonly meter: Meter | undefined
  startReporter:
    | ((
        options: Pick<TunnelReporterOptions, 'verifier' | 'onClose' | 'onAccessRules' | 'onLeaseExpired'>,
      ) => TunnelReporter)
    | undefined
  /** Set in one of several workers of an edge. */
  readonly worker?: WorkerOptions | undefined
}

interface WorkerOptions {
  /** The sockets to listen on; empty if the cluster module passes connections. */
  readonly sockets: readonly Socket[]
  readonly primary: Pick<PrimaryConnection, 'siblings' | 'attach' | 'askTls' | 'onDrain' | 'onTunnelChanged'>
  /** Where siblings connect to this worker. */
  readonly socketPath: string
}

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
  const { host, meter, worker } = options
  let names: NameClaims | undefined
  let peers: Peers | undefined
  let siblings: Peers | undefined
  let isReplaced = false
  const instruments = new EdgeInstruments()
  const buffers = new SharedBufferBudget(EDGE_BUFFERED_BYTES_MAX)
  const traffic = new Traffic(() => names?.mayCarry() ?? options.startReporter === undefined)
  const factory = new TunnelFactory({ ...options, buffers, transferred: instruments.transferred })
  const registry = new Registry({
    ...options,
    factory,
    onClosed(tunnel, client, reason) {
      names?.closed(tunnel, client, reason)
      options.onClosed(tunnel, client, reason)
    },
    onTransfer: traffic.mayCarry,
    onChanged(tunnel) {
      peers?.onTunnelChanged(tunnel.address.host)
      siblings?.onTunnelChanged(tunnel.address.host)
      worker?.primary.onTunnelChanged(tunnel)
    },
  })
  const abortIfReached = (workspace: string) => {
    if (verifier.quotaReachedUntil(workspace) === undefined) return
    for (const client of registry.clientsInWorkspace(workspace)) client.abortRequests()
  }
  async function endKey(keyId: string, reason: 'revoked' | 'expired', keyHash: string): Promise<void> {
    registry.closeByKey(keyId, reason)
    names?.removeKeys((key) => key.keyId === keyId)
    traffic.abortResponses((client) => client.keyHash === keyHash)
    await peers?.end({ keyHash })
  }
  const verifier: Verifier = countVerdicts(
    instruments,
    options.startVerifier({
      onRevoked: endKey,
      async onArchived(workspace) {
        registry.closeByWorkspace(workspace, 'archived')
        names?.removeKeys((key) => key.workspace.slug === workspace)
        traffic.abortResponses((client) => client.workspace === workspace)
        await peers?.end({ workspace })
      },
      onQuota(workspace, { level }) {
        const until = verifier.quotaReachedUntil(workspace)
        for (const client of registry.clientsInWorkspace(workspace)) client.setQuotaReached(until)
        peers?.onQuotaChanged(workspace)
        siblings?.onQuotaChanged(workspace)
        if (level === 'reached') setTimeout(abortIfReached, ABORT_DELAY_MS, workspace).unref()
      },
      onReset() {
        names?.removeClosed()
        return reverify({
          registry,
          verify: (key) => verifier.verify(key),
          onInvalid: ({ id, secret }) => endKey(id, 'revoked', hashSecret(secret)),
        })
      },
      onTunnelsChanged: () => names?.syncNow(),
    }),
  )
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    // Uploads over slow connections may take any time; the connection guard requires progress.
    requestTimeout: 0,
    // TCP keep-alive detects clients that are gone, also while nothing is sent.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    shouldUpgradeCallback: (request) => connections.shouldUpgrade(request),
    // The router rejects such a request in its turn. Node would respond before the requests ahead of it.
    requireHostHeader: false,
  })
  // `headersError` limits the count: beyond a limit of its own, Node drops headers, which may frame the body.
  server.maxHeadersCount = 0
  let listener: Listener
  try {
    const services = { registry, factory, verifier, traffic, pressure: buffers }
    siblings = worker && (await startSiblings(worker, services))
    peers = await startPeers(options, services)
    listener = await startListener(server, {
      ...{ host, port: options.port, keepAliveInitialDelay: KEEP_ALIVE_MS },
      ...(worker && { inheritedSockets: worker.sockets }),
    })
  } catch (error) {
    server.close()
    peers?.close()
    siblings?.close()
    verifier.close()
    await meter?.stop()
    await options.localPorts?.close()
    throw error
  }
  // Starts after the listener: a second process on the port must not replace this edge at the control plane.
  // Nothing may be awaited until the guard is attached, so that the first connection finds the edge complete.
  names = startNameClaims(options, { registry, verifier, traffic })
  const addresses = createClientAddresses(options)
  const { port: listeningPort } = listener.address
  const ingress = createIngress({
    registry,
    addresses,
    scheme: options.publicEndpoint?.scheme ?? 'http',
    instruments,
    traffic,
    sharesPorts: worker !== undefined,
    remote: siblings ? preferNear(siblings.tunnels, peers?.tunnels) : peers?.tunnels,
    quotaReachedUntil: (workspace) => verifier.quotaReachedUntil(workspace),
  })
  const tcpTunnels = new TcpTunnels({
    ...options,
    cluster: peers && verifier.cluster,
    address: options.tcpHost || host,
    onConnection(host, socket) {
      const release = connections.admit(socket)
      if (!release) return
      socket.once('close', release)
      ingress.onTcpConnection(host, socket)
    },
  })
  const openTunnel = createAdmission({
    verifier,
    registry,
    meter,
    names,
    tcpTunnels: names || options.localPorts ? tcpTunnels : undefined,
    publicUrl(host, type, tcpPort) {
      if (type === 'tcp') return `tcp://${host}${tcpPort === undefined ? '' : `:${tcpPort}`}`
      const { scheme, port } = options.publicEndpoint ?? { scheme: 'http', port: listeningPort }
      return `${scheme}://${host}${port === undefined ? '' : `:${port}`}`
    },
  })
  const tlsAsk = worker
    ? { ask: (domain: string) => worker.primary.askTls(domain) }
    : new TlsAsk({ ...options, registry, findHost: (host) => verifier.findHost(host) })
  worker?.primary.onDrain((id) => registry.drainMoved(id))
  const readiness = new Readiness({
    isConnected: () => traffic.mayCarry() && verifier.isUpToDate(),
    isClusterKnown: () => !peers || verifier.cluster?.isComplete === true,
    isOverloaded: () => connections.isCrowded || buffers.isNearlyFull,
  })
  const controlApi = createControlApi({ openTunnel, tlsAsk, readiness, addresses })
  const connections: IngressConnections = guardConnections(server, {
    addresses,
    onConnectionsLimited: options.onConnectionsLimited,
    ...createRouter(controlApi, ingress, () => isReplaced),
  })
  await listener.allListening

  return {
    url: listenUrl(host, listener.address),
    metrics: {
      instruments,
      openTunnels: () => registry.tunnels(),
      clients: () => registry.clients(),
      bufferedBytes: () => buffers.bytes,
      peers: peers && (() => peers.connections),
      isUpToDate: verifier.isUpToDate,
      spoolBytes: meter && (() => meter.spoolBytes()),
    },
    announceStop() {
      readiness.drain()
      registry.goAway()
    },
    async stop(reason) {
      if (reason !== 'replaced') readiness.drain()
      // Drains: accepts no connections, and waits for requests in progress during the grace period.
      const closed = listener.close()
      registry.goAway()
      if (peers && reason !== 'replaced') await waitUntilMoved(registry, verifier)
      registry.release()
      const released = names?.release()
      if (reason === 'replaced') {
        isReplaced = true
        await released
        await waitWhile(() => hasClients(registry) || connections.openCount() > 0, REPLACED_GRACE_MS)
      }
      tcpTunnels.drain()
      await closed
      server.close()
      const forwarded = () => (peers?.forwarded ?? 0) + (siblings?.forwarded ?? 0)
      await waitWhile(() => connections.busyCount() > 0 || forwarded() > 0, SHUTDOWN_GRACE_MS)
      verifier.close()
      registry.closeAll()
      peers?.close()
      siblings?.close()
      server.closeAllConnections()
      await meter?.stop()
      await released
      await names?.stop()
      await options.localPorts?.close()
    },
  }
}

async function waitWhile(condition: () => boolean, timeoutMs: number): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (condition() && performance.now() < deadline) await sleep(DRAIN_POLL_MS)
}

const hasClients = (registry: Registry) => !registry.clients()[Symbol.iterator]().next().done

/** Waits until the tunnels are open at other edges, too, which forward to this one meanwhile. */
async function waitUntilMoved(registry: Registry, { cluster }: Verifier): Promise<void> {
  const isOnlyHere = ({ type, address: { host } }: Tunnel) =>
    type === 'http' && !cluster?.findEdges(host).some((id) => cluster.peer(id))
  const areSomeOnlyHere = () => registry.tunnels().some(isOnlyHere)
  if (!areSomeOnlyHere()) return
  await waitWhile(areSomeOnlyHere, MOVE_MS)
  await sleep(MOVED_MS)
}

const countVerdicts = (instruments: EdgeInstruments, verifier: Verifier): Verifier => ({
  ...verifier,
  async verify(key) {
    try {
      const result = await verifier.verify(key)
      instruments.countVerdict(result.valid ? 'valid' : result.reason)
      return result
    } catch (error) {
      instruments.countVerdict('unavailable')
      throw error
    }
  },
})

function startNameClaims(
  { startReporter }: EdgeOptions,
  { registry, verifier, traffic }: { registry: Registry; verifier: Verifier; traffic: Traffic },
): NameClaims | undefined {
  let claims: NameClaims | undefined
  const reporter = startReporter?.({
    verifier,
    onClose({ id, session, reason, message }) {
      if (reason !== 'moved') return registry.closeForGood(id, session, { reason, message })
      // A client that has moved is open at another edge.
      const client = registry.clientById(id)
      if (client) registry.close(client, reason)
    },
    onAccessRules({ workspace, name, access, ...count }) {
      registry.setNameRules(workspace, name, access)
      registry.setCount(workspace, name, count)
      claims?.setRules(workspace, name, access)
    },
    onLeaseExpired() {
      traffic.abortAll()
      for (const client of registry.clients()) client.abortRequests()
    },
  })
  claims = reporter && new NameClaims(reporter)
  return claims
}
