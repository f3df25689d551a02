// Networks in CIDR notation, such as those of access rules and trusted proxies.
import { BlockList, isIP, isIPv6 } from 'node:net'
import { normalizeAddress } from './ip-address.ts'

/** An address without a prefix length is a network of one address. */
const NETWORK = /^([^/]{1,45})(?:\/(\d{1,3}))?$/
const MAPPED_BITS = 96

/** A network in canonical form, with a prefix length; undefined if the text is no address or network. */
export function parseNetwork(text: string): string | undefined {
  const [, networkAddress = '', length] = NETWORK.exec(text) ?? []
  const address =
    isIP(networkAddress) && !networkAddress.includes('%') ? normalizeAddress(networkAddress) : undefined
  if (address === undefined) return undefined
  const addressBits = isIPv6(address) ? 128 : 32
  // An IPv4 address that is mapped to IPv6 has a prefix length of IPv6.
  const offset = isIPv6(networkAddress) && !isIPv6(address) ? MAPPED_BITS : 0
  const bits = length === undefined ? addressBits : Number(length) - offset
  return bits >= 0 && bits <= addressBits ? `${address}/${bits}` : undefined
}

/** Whether an address, in canonical form, is in one of the networks. */
export type NetworkMatcher = (address: string) => boolean

/** The networks have the form of `parseNetwork`. */
export function createNetworkMatcher(networks: readonly string[]): NetworkMatcher {
  // Separate, because in a network such as ::/64 a BlockList finds every IPv4 address, mapped to IPv6.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  for (const network of networks) {
    const [address = '', bits] = network.split('/')
    const family = addressFamily(address)
    lists[family].addSubnet(address, Number(bits), family)
  }
  return (address) => {
    const family = addressFamily(address)
    return lists[family].check(address, family)
  }
}

/** Expects an address in canonical form. `isIPv6` would compile its regular expression: 10 ms of startup. */
const addressFamily = (address: string) => (address.includes(':') ? 'ipv6' : 'ipv4')
