// Forwarding between this edge and other edges of its group, and between the workers of an edge.
import type { Verifier } from '../edge-sdk/index.ts'
import type { EdgeOptions, WorkerOptions } from './options.ts'
import { Peers, type PeersOptions } from './peers/forwarding.ts'
import { tlsTransport } from './peers/tls-transport.ts'
import type { Tunnel } from './tunnels/tunnel.ts'
import { preferNear } from './workers/remote.ts'
import { workerTransport } from './workers/worker-cluster.ts'

/** An edge has up to 64 workers, and twice as many while they are restarted. */
const SESSIONS_PER_PEER_MAX = 128

type PeerServices = Pick<PeersOptions, 'registry' | 'factory' | 'traffic' | 'pressure'> & {
  verifier: Verifier
}

type ForwardingOptions = Pick<EdgeOptions, 'peerListener' | 'worker'>

export class Forwarding {
  readonly #options: ForwardingOptions
  #peers: Peers | undefined
  #workerPeers: Peers | undefined

  constructor(options: ForwardingOptions) {
    this.#options = options
  }

  async start(services: PeerServices): Promise<void> {
    const { worker } = this.#options
    this.#workerPeers = worker && (await startWorkerPeers(worker, services))
    this.#peers = await startPeers(this.#options, services)
  }

  /** Tunnels whose clients are connected elsewhere; undefined if this edge does not forward. */
  get remote(): Pick<Peers['tunnels'], 'find' | 'hasOther' | 'onMoved'> | undefined {
    const tunnels = this.#peers?.tunnels
    return this.#workerPeers ? preferNear(this.#workerPeers.tunnels, tunnels) : tunnels
  }

  /** Other edges; undefined if this edge neither accepts nor forwards requests. */
  get peers(): Peers | undefined {
    return this.#peers
  }

  /** Streams of other edges and workers that are connected to clients of this one. */
  get forwarded(): number {
    return (this.#peers?.forwarded ?? 0) + (this.#workerPeers?.forwarded ?? 0)
  }

  onTunnelChanged(tunnel: Tunnel): void {
    this.#peers?.onTunnelChanged(tunnel.address.host)
    this.#workerPeers?.onTunnelChanged(tunnel.address.host)
    this.#options.worker?.primary.onTunnelChanged(tunnel)
  }

  onQuotaChanged(workspace: string): void {
    this.#peers?.onQuotaChanged(workspace)
    this.#workerPeers?.onQuotaChanged(workspace)
  }

  /** To other workers of this edge. Those stay connected to this one. */
  sendPeersElsewhere(): void {
    this.#peers?.sendElsewhere()
  }

  close(): void {
    this.#peers?.close()
    this.#workerPeers?.close()
  }
}

/** Other workers are served until this one exits, also when other edges are not any more. */
async function startWorkerPeers(
  { primary, socketPath }: WorkerOptions,
  { registry, verifier, ...services }: PeerServices,
): Promise<Peers> {
  const peers = new Peers({
    ...services,
    registry: {
      atHost: (host) => registry.atHost(host),
      clientById: (id) => registry.clientById(id),
      isWithdrawn: false,
      isReleased: false,
    },
    cluster: primary.otherWorkers,
    transport: workerTransport(primary.otherWorkers.edgeId, socketPath),
    // One for each connection of other edges.
    sessionsPerPeerMax: Number.POSITIVE_INFINITY,
    quotaReachedUntil: (workspace) => verifier.quotaReachedUntil(workspace),
    onForwarded: (client) => client.onForwarded(),
  })
  await peers.listen()
  await primary.attach(socketPath)
  return peers
}

async function startPeers(
  { peerListener: listen, worker }: ForwardingOptions,
  { verifier, ...services }: PeerServices,
): Promise<Peers | undefined> {
  const { cluster } = verifier
  if (!listen || !cluster) return undefined
  const peers = new Peers({
    ...services,
    cluster,
    transport: tlsTransport(listen, cluster),
    sessionsPerPeerMax: SESSIONS_PER_PEER_MAX,
    relay: worker && {
      otherWorkers: worker.primary.otherWorkers,
      transport: workerTransport(worker.primary.otherWorkers.edgeId, worker.socketPath),
      pressure: services.pressure,
      traffic: services.traffic,
    },
    quotaReachedUntil: (workspace) => verifier.quotaReachedUntil(workspace),
  })
  // Other edges ask this worker about clients of all workers.
  worker?.primary.otherWorkers.onLocations((hosts) => {
    for (const host of hosts) peers.onTunnelChanged(host)
  })
  await peers.listen()
  return peers
}
