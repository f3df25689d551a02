// Client addresses behind trusted proxies.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { forwardedClient, normalizeAddress } from '../../lib/net/ip-address.ts'
import { createNetworkMatcher } from '../../lib/net/ip-network.ts'

export interface ClientAddresses {
  /** Undefined for a trusted proxy, because its connections belong to many clients. */
  ofPeer(socket: Socket): string | undefined
  /** Undefined if a trusted proxy sends no X-Forwarded-For. */
  ofRequest(request: IncomingMessage): string | undefined
  /** Whether a trusted proxy sends the request itself, and not for a client. */
  isFromProxy(request: IncomingMessage): boolean
  /** X-Forwarded-For for the local server: what a trusted proxy sent, and the address that connected. */
  forwardedFor(request: IncomingMessage): string
}

export interface ClientAddressesOptions {
  /** Networks whose X-Forwarded-For is trusted, in the form of `parseNetwork`. */
  readonly trustedProxies: readonly string[]
  /** Called once, with the first trusted proxy that sends a request without X-Forwarded-For. */
  onUnnamedClient(proxy: string): void
  /** Called once, with the first peer whose X-Forwarded-For is ignored. */
  onIgnoredProxy(peer: string): void
}

export function createClientAddresses({
  trustedProxies,
  ...options
}: ClientAddressesOptions): ClientAddresses {
  const onUnnamedClient = once(options.onUnnamedClient)
  const onIgnoredProxy = once(options.onIgnoredProxy)
  const isTrusted = createNetworkMatcher(trustedProxies)

  /** Cached by connection, which carries many requests, because the lookup is slow. */
  const peers = new WeakMap<Socket, Peer>()
  const findPeer = (socket: Socket): Peer => {
    const known = peers.get(socket)
    if (known) return known
    const address = normalizeAddress(socket.remoteAddress ?? '')
    const peer = { address, isTrusted: address !== undefined && isTrusted(address) }
    // The address of a closed socket is unknown.
    if (address !== undefined) peers.set(socket, peer)
    return peer
  }

  return {
    ofPeer(socket) {
      const peer = findPeer(socket)
      return peer.isTrusted ? undefined : peer.address
    },
    ofRequest({ headers, socket }) {
      const peer = findPeer(socket)
      const forwarded = headers['x-forwarded-for']
      if (peer.address === undefined || (forwarded === undefined && !peer.isTrusted)) return peer.address
      if (forwarded === undefined) {
        onUnnamedClient(peer.address)
        return undefined
      }
      if (!peer.isTrusted) onIgnoredProxy(peer.address)
      return forwardedClient(peer.address, forwarded, isTrusted)
    },
    isFromProxy({ headers, socket }) {
      return findPeer(socket).isTrusted && headers['x-forwarded-for'] === undefined
    },
    forwardedFor({ headers, socket }) {
      const { address, isTrusted } = findPeer(socket)
      if (address === undefined) return 'unknown'
      const forwarded = headers['x-forwarded-for']
      return forwarded !== undefined && isTrusted ? `${forwarded}, ${address}` : address
    },
  }
}

/** The peer of a connection. */
interface Peer {
  readonly address: string | undefined
  readonly isTrusted: boolean
}

function once(call: (address: string) => void): (address: string) => void {
  let isCalled = false
  return (address) => {
    if (!isCalled) call(address)
    isCalled = true
  }
}
