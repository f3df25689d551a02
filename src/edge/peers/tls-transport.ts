// Connections between edges: TLS with the pre-shared keys of the control plane.
import { once } from 'node:events'
import { connect } from 'node:tls'
import type { Cluster } from '../../edge-sdk/index.ts'
import type { ListenAddress } from '../../lib/net/listen-error.ts'
import { listenForPeers } from './listener.ts'
import { presentIdentity, rejectCertificate, TLS_OPTIONS } from './psk.ts'
import type { PeerTransport } from './transport.ts'

const CONNECT_TIMEOUT_MS = 3_000

export const tlsTransport = (address: ListenAddress, cluster: Cluster): PeerTransport => ({
  listen: (onPeer) => listenForPeers(address, cluster, onPeer),
  async connect(peer) {
    const identity = presentIdentity(cluster, peer)
    if (!identity) throw new Error('There is no key for the peer.')
    const { hostname, port } = new URL(`tcp://${peer.address}`)
    const socket = connect({
      ...TLS_OPTIONS,
      // An IPv6 address is in brackets.
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port),
      pskCallback: () => identity,
      checkServerIdentity: rejectCertificate,
    })
    const signal = AbortSignal.timeout(CONNECT_TIMEOUT_MS)
    try {
      await once(socket, 'secureConnect', { signal })
      return socket
    } catch (error) {
      socket.on('error', () => {})
      socket.destroy()
      throw error
    }
  },
})
