// TLS between edges: version 1.3 with a pre-shared key that only the two edges and the control plane have,
// and no certificates. The identity names both edges and the key: `<from>><to>#<key id>`.
import { createHash } from 'node:crypto'
import type { TLSSocket } from 'node:tls'
import type { Cluster, Peer } from '../../edge-sdk/index.ts'

/** The only cipher of TLS 1.3 for keys that are not bound to another hash. */
export const TLS_OPTIONS = {
  minVersion: 'TLSv1.3',
  ciphers: 'TLS_AES_128_GCM_SHA256',
} as const

const IDENTITY = /^([^>#]{1,50})>([^>#]{1,50})#([0-9a-f]{16})$/

/** Tells the receiver which of several keys is used. */
const keyId = (secret: Uint8Array) =>
  createHash('sha256').update('adit peer key id').update(secret).digest('hex').slice(0, 16)

/** What an edge presents to a peer; undefined if it has no key for it. */
export function presentIdentity({ edgeId }: Cluster, { id, secrets }: Peer) {
  const [psk] = secrets
  return edgeId === undefined || !psk ? undefined : { identity: `${edgeId}>${id}#${keyId(psk)}`, psk }
}

/**
 * Finds the peer and the key of an identity; undefined if it is not a peer, or means another edge. A message
 * of this edge that is sent back to it means another edge, too.
 */
function findIdentity(cluster: Cluster, identity: string): { id: string; psk: Uint8Array } | undefined {
  const [, from = '', to, key] = IDENTITY.exec(identity) ?? []
  if (to === undefined || to !== cluster.edgeId || from === to) return undefined
  const psk = cluster.peer(from)?.secrets.find((secret) => keyId(secret) === key)
  return psk && { id: from, psk }
}

/** A handshake with a pre-shared key has no certificate, so no certificate is ever right. */
export const rejectCertificate = () => new Error('The peer has a certificate instead of the pre-shared key.')

/** The peer of each connection whose key was looked up. Only after the handshake it is proven. */
export class PeerIdentities {
  readonly #cluster: Cluster
  readonly #ids = new WeakMap<TLSSocket, string>()

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** For `pskCallback` of a server. */
  findKey(socket: TLSSocket, identity: string): Uint8Array | null {
    const found = findIdentity(this.#cluster, identity)
    if (!found) return null
    this.#ids.set(socket, found.id)
    return found.psk
  }

  /** Undefined if the peer is gone by now. */
  peerId(socket: TLSSocket): string | undefined {
    const id = this.#ids.get(socket)
    return id !== undefined && this.#cluster.peer(id) ? id : undefined
  }
}
