// Where a request comes from: the client's address and scheme. One canonical form of an address for limits, sessions
// and the access log, on the fast path and on the other. What proxies say counts only where they are trusted.
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import proxyAddress from '@fastify/proxy-addr'
import { normalizeAddress } from '../net/ip-address.ts'

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
      const forwarded = request.headers['x-forwarded-for']
      if (!isTrusted || peer === undefined || forwarded === undefined) return peer
      // From the nearest hop outwards, up to the first that is not a trusted proxy. What is not an address was not
      // written by a trusted proxy: the request counts as that of the last hop before it.
      let client = peer
      for (const hop of String(forwarded).split(',').reverse()) {
        if (!isTrusted(client, 0)) break
        const address = normalizeAddress(hop)
        if (address === undefined) break
        client = address
      }
      return client
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
