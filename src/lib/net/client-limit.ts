// Limits of concurrent use per client.
import { isIPv6 } from 'node:net'
import { KeyedCounter } from '../collections/keyed-counter.ts'
import { ipPrefix } from './ip-address.ts'

interface ClientLimits {
  /** Per IPv4 address or IPv6 /64. */
  readonly max: number
  /** Per IPv6 /48, because providers assign a whole /48 to one customer. */
  readonly maxPer48: number
}

/** The IPv4 address or IPv6 /48 of a client; empty if the client is unknown. */
export const clientNetwork = (client: string | undefined) =>
  client === undefined ? '' : ipPrefix(client, 48)

/** A concurrency limit per client. Unknown clients are not limited. */
export class ClientLimit {
  readonly #limits: ClientLimits
  readonly #used = new KeyedCounter()

  constructor(limits: ClientLimits) {
    this.#limits = limits
  }

  /** Returns a function to release the slot, to be called once; undefined if the client is at its limit. */
  acquire(client: string | undefined): (() => void) | undefined {
    const networks = client === undefined ? [] : this.#limitedNetworks(client)
    if (networks.some(([network, max]) => this.#used.get(network) >= max)) return undefined
    for (const [network] of networks) this.#used.add(network, 1)
    return () => {
      for (const [network] of networks) this.#used.add(network, -1)
    }
  }

  #limitedNetworks(client: string): [network: string, max: number][] {
    const { max, maxPer48 } = this.#limits
    if (!isIPv6(client)) return [[client, max]]
    return [
      [ipPrefix(client, 64), max],
      [ipPrefix(client, 48), maxPer48],
    ]
  }
}
