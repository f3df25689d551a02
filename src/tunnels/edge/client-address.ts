// The client address of a request, and how much one client may use at once.
import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv6 } from 'node:net'
import { forwardedClient, ipPrefix, normalizeAddress } from '../../net/ip-address.ts'

const familyOf = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4')

export interface ClientAddresses {
  /** Undefined for a trusted proxy, whose connections are those of many clients. */
  ofPeer(address: string | undefined): string | undefined
  /** Undefined where a trusted proxy does not say for whom it asks. */
  ofRequest(request: IncomingMessage): string | undefined
}

export interface ClientAddressesOptions {
  /** Addresses and networks whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[]
  /** Called once, with the first trusted proxy that sends a request without X-Forwarded-For. */
  onUnnamedClient(proxy: string): void
  /** Called once, with the first peer whose X-Forwarded-For is ignored. */
  onIgnoredProxy(peer: string): void
}

/** X-Forwarded-For counts as far as trusted proxies have written it. */
export function createClientAddresses({
  trustedProxies,
  ...options
}: ClientAddressesOptions): ClientAddresses {
  const onUnnamedClient = once(options.onUnnamedClient)
  const onIgnoredProxy = once(options.onIgnoredProxy)
  const trusted = new BlockList()
  for (const network of trustedProxies) {
    const [address = '', bits] = network.split('/')
    if (bits === undefined) trusted.addAddress(address, familyOf(address))
    else trusted.addSubnet(address, Number(bits), familyOf(address))
  }
  const isTrusted = (address: string) => trusted.check(address, familyOf(address))

  return {
    ofPeer(peer = '') {
      const address = normalizeAddress(peer)
      return address === undefined || isTrusted(address) ? undefined : address
    },
    ofRequest({ headers, socket }) {
      const peer = normalizeAddress(socket.remoteAddress ?? '')
      const forwarded = headers['x-forwarded-for']
      if (peer === undefined) return undefined
      if (forwarded === undefined && isTrusted(peer)) {
        onUnnamedClient(peer)
        return undefined
      }
      if (forwarded !== undefined && !isTrusted(peer)) onIgnoredProxy(peer)
      return forwardedClient(peer, forwarded, isTrusted)
    },
  }
}

function once(call: (address: string) => void): (address: string) => void {
  let isCalled = false
  return (address) => {
    if (!isCalled) call(address)
    isCalled = true
  }
}

export interface ClientLimits {
  /** For an IPv4 address or an IPv6 /64. */
  readonly max: number
  /** For an IPv6 /48, of which one customer of a provider may have all networks. */
  readonly maxOf48: number
}

/** Counts what each client uses at once. An unknown client is not limited. */
export class ClientLimit {
  readonly #limits: ClientLimits
  readonly #used = new Map<string, number>()

  constructor(limits: ClientLimits) {
    this.#limits = limits
  }

  /** Returns what releases it, to be called once; undefined where the client uses the maximum already. */
  acquire(client: string | undefined): (() => void) | undefined {
    const networks = client === undefined ? [] : this.#networksOf(client)
    if (networks.some(([network, max]) => this.#usedBy(network) >= max)) return undefined
    for (const [network] of networks) this.#used.set(network, this.#usedBy(network) + 1)
    return () => {
      for (const [network] of networks) this.#release(network)
    }
  }

  #networksOf(client: string): [network: string, max: number][] {
    const { max, maxOf48 } = this.#limits
    if (!isIPv6(client)) return [[client, max]]
    return [
      [ipPrefix(client, 64), max],
      [ipPrefix(client, 48), maxOf48],
    ]
  }

  #usedBy(network: string): number {
    return this.#used.get(network) ?? 0
  }

  #release(network: string): void {
    const left = this.#usedBy(network) - 1
    if (left > 0) this.#used.set(network, left)
    else this.#used.delete(network)
  }
}
