// How the connections of peers are made: by TLS between edges, by Unix sockets between workers of an edge.
import type { Socket } from 'node:net'
import type { Peer } from '../../edge-sdk/index.ts'

export interface PeerTransport {
  /** `onPeer` gets connections of peers, with the id that each has proven. */
  listen(onPeer: (id: string, socket: Socket) => void): Promise<{ close(): void }>
  /** Rejects if the peer does not accept the connection in time. */
  connect(peer: Peer): Promise<Socket>
}
