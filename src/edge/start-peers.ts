// Starts forwarding between this edge and other edges of its group, and between the workers of an edge.

import type { Verifier } from '../edge-sdk/index.ts'
import type { ListenAddress } from '../lib/net/listen-error.ts'
import { Peers, type PeersOptions } from './peers/forwarding.ts'
import { tlsTransport } from './peers/tls-transport.ts'
import type { PrimaryConnection } from './workers/connection.ts'
import { siblingTransport } from './workers/siblings.ts'

/** An edge has up to 64 workers, and twice as many while they are restarted. */
const SESSIONS_PER_PEER_MAX = 128

interface WorkerOptions {
  readonly primary: Pick<PrimaryConnection, 'siblings' | 'attach'>
  /** Where siblings connect to this worker. */
  readonly socketPath: string
}

interface PeerOptions {
  /** Undefined if this edge neither accepts nor forwards requests. */
  readonly peerListener?: ListenAddress | undefined
  /** Set in one of several workers of an edge. */
  readonly worker?: WorkerOptions | undefined
}

type PeerServices = Pick<PeersOptions, 'registry' | 'factory' | 'traffic' | 'pressure'> & {
  verifier: Verifier
}

/**
 * A worker that stops still serves requests of its siblings, until its clients have connected to another
 * worker.
 */
export async function startSiblings(
  { primary, socketPath }: WorkerOptions,
  { registry, verifier, ...services }: PeerServices,
): Promise<Peers> {
  const peers = new Peers({
    ...services,
    registry: {
      atHost: (host) => registry.atHost(host),
      clientById: (id) => registry.clientById(id),
      isReleased: false,
    },
    cluster: primary.siblings,
    transport: siblingTransport(primary.siblings.edgeId, socketPath),
    // One for each connection of other edges.
    sessionsPerPeerMax: Number.POSITIVE_INFINITY,
    quotaReachedUntil: (workspace) => verifier.quotaReachedUntil(workspace),
  })
  await peers.listen()
  await primary.attach(socketPath)
  return peers
}

export async function startPeers(
  { peerListener: listen, worker }: PeerOptions,
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
      siblings: worker.primary.siblings,
      transport: siblingTransport(worker.primary.siblings.edgeId, worker.socketPath),
      pressure: services.pressure,
    },
    quotaReachedUntil: (workspace) => verifier.quotaReachedUntil(workspace),
  })
  // Other edges ask this worker about clients of its siblings.
  worker?.primary.siblings.onLocations((hosts) => {
    for (const host of hosts) peers.onTunnelChanged(host)
  })
  await peers.listen()
  return peers
}
