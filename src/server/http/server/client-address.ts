// The client's address and scheme. Limits, sessions, the response cache and the access log use the same
// canonical form of an address. Headers of proxies count only if the proxy is trusted.
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { forwardedClient, normalizeAddress } from '../../../lib/net/ip-address.ts'
import { createNetworkMatcher } from '../../../lib/net/ip-network.ts'

export interface ClientReader {
  /** Undefined if the connection is closed. */
  address(request: IncomingMessage): string | undefined
  scheme(request: IncomingMessage): 'http' | 'https'
  /** Undefined for a trusted proxy, because its connections belong to many clients. */
  peer(socket: Socket): string | undefined
}

/** The networks have the form of `parseNetwork`. */
export function createClientReader(trustedProxies: readonly string[]): ClientReader {
  const isTrusted = trustedProxies.length > 0 ? createNetworkMatcher(trustedProxies) : undefined
  const findPeer = ({ socket: { remoteAddress } }: { socket: Socket }) =>
    remoteAddress === undefined ? undefined : normalizeAddress(remoteAddress)
  return {
    address(request) {
      const peer = findPeer(request)
      if (!isTrusted || peer === undefined) return peer
      return forwardedClient(peer, request.headers['x-forwarded-for'], isTrusted)
    },
    scheme(request) {
      const peer = findPeer(request)
      const forwarded = String(request.headers['x-forwarded-proto'] ?? '')
      const scheme = forwarded.split(',').at(-1)?.trim().toLowerCase()
      if (peer !== undefined && isTrusted?.(peer) && (scheme === 'http' || scheme === 'https')) return scheme
      return (request.socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'
    },
    peer(socket) {
      const peer = findPeer({ socket })
      return peer !== undefined && isTrusted?.(peer) ? undefined : peer
    },
  }
}
