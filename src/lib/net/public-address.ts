// Whether an IP address is on the public internet: not one that the IANA registries of special-purpose
// addresses reserve for private networks, the host itself, its link, documentation or tunneling.
import { isIPv6 } from 'node:net'
import { ipv6Groups, normalizeAddress } from './ip-address.ts'
import { createNetworkMatcher } from './ip-network.ts'

const isSpecialIPv4 = createNetworkMatcher([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // This includes the metadata service of most clouds.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // The virtual machine host of Azure.
  '168.63.129.16/32',
])

const isUnicastIPv6 = createNetworkMatcher(['2000::/3'])

const isSpecialIPv6 = createNetworkMatcher([
  // Teredo and others.
  '2001::/23',
  '2001:db8::/32',
  // 6to4.
  '2002::/16',
  '3fff::/20',
])

const isNat64 = createNetworkMatcher(['64:ff9b::/96'])

/** False for text that is not an address. What a NAT64 gateway translates is judged by its IPv4 address. */
export function isPublicAddress(text: string): boolean {
  const address = normalizeAddress(text)
  if (address === undefined) return false
  if (!isIPv6(address)) return !isSpecialIPv4(address)
  if (isNat64(address)) return !isSpecialIPv4(embeddedIPv4(address))
  return isUnicastIPv6(address) && !isSpecialIPv6(address)
}

/** The last 32 bits of a canonical IPv6 address. */
const embeddedIPv4 = (address: string): string =>
  ipv6Groups(address)
    .slice(-2)
    .map((group) => Number.parseInt(group, 16))
    .flatMap((value) => [value >> 8, value & 255])
    .join('.')
