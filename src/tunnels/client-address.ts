// The client address of a request, and how much one client may use at once.
import type { IncomingMessage } from 'node:http'
import { BlockList, isIPv6 } from 'node:net'
import { forwardedClient, ipPrefix, normalizeAddress } from '../net/ip-address.ts'

const familyOf = (address: string) => (isIPv6(address) ? 'ipv6' : 'ipv4')

export interface ClientAddresses {
  /** Undefined for a trusted proxy, whose connections are those of many clients. */
  ofPeer(address: string | undefined): string | undefined
  /** Undefined where a trusted proxy does not say for whom it asks. */
  ofRequest(request: IncomingMessage): string | undefined
}

/** Addresses by prefix. X-Forwarded-For counts as far as trusted proxies have written it. */
export function createClientAddresses(trustedProxies: readonly string[]): ClientAddresses {
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
      return address === undefined || isTrusted(address) ? undefined : ipPrefix(address, 64)
    },
    ofRequest({ headers, socket }) {
      const peer = normalizeAddress(socket.remoteAddress ?? '')
      const forwarded = headers['x-forwarded-for']
      if (peer === undefined || (isTrusted(peer) && forwarded === undefined)) return undefined
      return ipPrefix(forwardedClient(peer, forwarded, isTrusted), 64)
    },
  }
}

/** Counts what each client uses at once. An unknown client is not limited. */
export class ClientLimit {
  readonly #max: number
  readonly #used = new Map<string, number>()

  constructor(max: number) {
    this.#max = max
  }

  /** Returns what releases it, to be called once; undefined where the client uses the maximum already. */
  acquire(client: string | undefined): (() => void) | undefined {
    if (client === undefined) return () => {}
    const used = this.#used.get(client) ?? 0
    if (used >= this.#max) return undefined
    this.#used.set(client, used + 1)
    return () => {
      const left = (this.#used.get(client) ?? 0) - 1
      if (left > 0) this.#used.set(client, left)
      else this.#used.delete(client)
    }
  }
}
