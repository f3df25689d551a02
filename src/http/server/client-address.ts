// Where a request comes from: the client's address and scheme. One canonical form of an address for limits, sessions
// and the access log, on the fast path and on the other. What proxies say counts only where they are trusted.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import proxyAddress from '@fastify/proxy-addr'
import { forwardedClient, normalizeAddress } from '../../net/ip-address.ts'

export interface ClientReader {
  /** Undefined where the connection is gone. */
  address(request: IncomingMessage): string | undefined
  scheme(request: IncomingMessage): 'http' | 'https'
}

export function createClientReader(trustedProxies: readonly string[]): ClientReader {
  const isTrusted = trustedProxies.length > 0 ? proxyAddress.compile([...trustedProxies]) : undefined
  const peerOf = ({ socket }: IncomingMessage) =>
    socket.remoteAddress === undefined ? undefined : normalizeAddress(socket.remoteAddress)
  return {
    address(request) {
      const peer = peerOf(request)
      if (!isTrusted || peer === undefined) return peer
      return forwardedClient(peer, request.headers['x-forwarded-for'], (address) => isTrusted(address, 0))
    },
    scheme(request) {
      const peer = peerOf(request)
      const forwarded = String(request.headers['x-forwarded-proto'] ?? '')
      const said = forwarded.split(',').at(-1)?.trim().toLowerCase()
      if (peer !== undefined && isTrusted?.(peer, 0) && (said === 'http' || said === 'https')) return said
      return (request.socket as Partial<TLSSocket>).encrypted ? 'https' : 'http'
    },
  }
}
