// Accepts connections of other edges, on a port of its own. Before a peer has proven its key, a connection
// costs little: handshakes are limited in number and time, and when there are too many, the oldest ends.
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type TLSSocket } from 'node:tls'
import type { Cluster } from '../../edge-sdk/index.ts'
import type { ListenAddress } from '../../lib/net/listen-error.ts'
import { PeerIdentities, TLS_OPTIONS } from './psk.ts'

const HANDSHAKES_MAX = 64
const HANDSHAKE_TIMEOUT_MS = 5_000

interface PeerListener {
  readonly address: AddressInfo
  close(): void
}

/** `onPeer` gets connections of peers that have proven their key. */
export async function listenForPeers(
  { host, port }: ListenAddress,
  cluster: Cluster,
  onPeer: (id: string, socket: TLSSocket) => void,
): Promise<PeerListener> {
  const identities = new PeerIdentities(cluster)
  /** Connections before the end of their handshake, by address; the oldest is the first. */
  const handshakes = new Map<string, Socket>()
  const server = createServer({
    ...TLS_OPTIONS,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    pskCallback: (socket, identity) => identities.findKey(socket, identity),
  })
  server.on('connection', (socket: Socket) => {
    const name = remoteName(socket)
    const oldest = handshakes.entries().next().value
    if (oldest && handshakes.size >= HANDSHAKES_MAX) {
      handshakes.delete(oldest[0])
      oldest[1].destroy()
    }
    handshakes.set(name, socket)
    socket.once('close', () => {
      if (handshakes.get(name) === socket) handshakes.delete(name)
    })
  })
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('secureConnection', (socket) => {
    handshakes.delete(remoteName(socket))
    socket.on('error', () => {})
    const id = identities.peerId(socket)
    if (id === undefined) socket.destroy()
    else onPeer(id, socket)
  })
  server.listen({ host, port })
  await once(server, 'listening')
  server.on('error', () => {})
  return {
    address: server.address() as AddressInfo,
    close() {
      server.close()
      for (const socket of handshakes.values()) socket.destroy()
    },
  }
}

const remoteName = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
