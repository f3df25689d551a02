// The cluster as one edge knows it: the other edges of its group, and which of them has a client for a host.

/** Another edge of the group that accepts connections of edges. */
export interface Peer {
  readonly id: string
  /** Where it listens for other edges: host and port. */
  readonly address: string
  /**
   * Pre-shared keys of this edge and the peer, the one to use first; connections with any of them are
   * accepted. They change every hour.
   */
  readonly secrets: readonly Uint8Array[]
}

export interface Cluster {
  /** The id of this edge, as peers know it; undefined until the control plane was reached. */
  readonly edgeId: string | undefined
  /** Whether all locations are known: after the start, they arrive a moment later than revocations. */
  readonly isComplete: boolean
  /** Ids of other edges that have a client for the host. */
  findEdges(host: string): readonly string[]
  /** The port of a host whose tunnels are TCP tunnels. */
  tcpPort(host: string): number | undefined
  /** The hosts that have one. */
  tcpHosts(): Iterable<string>
  /** Undefined if the edge is gone, or accepts no connections of edges. */
  peer(id: string): Peer | undefined
  /** Calls the listener when peers were added, changed or removed. */
  onPeers(listener: () => void): void
  /** Calls the listener with hosts whose edges or ports may have changed. */
  onLocations(listener: (hosts: readonly string[]) => void): void
  /** Calls the listener with the SHA-256 of each revoked key, also of those that this edge does not know. */
  onRevoked(listener: (hash: string) => void): void
}
