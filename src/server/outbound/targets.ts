// The addresses that requests may be sent to: public ones, and those of the configured private networks. A
// host name is resolved once for each request, and the connection is made to an address that was checked, so
// a DNS record that changes afterwards (DNS rebinding) has no effect.
import { Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { normalizeAddress } from '../../lib/net/ip-address.ts'
import { createNetworkMatcher } from '../../lib/net/ip-network.ts'
import { isPublicAddress } from '../../lib/net/public-address.ts'

const DNS_TIMEOUT_MS = 2_000
const DNS_TRIES = 2
const LOOPBACK = ['127.0.0.1', '::1']

/** Owners of a workspace see the message, so it must not reveal what internal names resolve to. */
export class TargetError extends Error {
  override name = 'TargetError'
}

interface TargetOptions {
  /** Networks in the form that `parseNetwork` returns. */
  privateNetworks: readonly string[]
  /** Defaults to those of the system. */
  dnsServers?: readonly string[]
}

export type Targets = ReturnType<typeof createTargets>

export function createTargets({ privateNetworks, dnsServers }: TargetOptions) {
  const isAllowedPrivate = createNetworkMatcher(privateNetworks)

  const areAllowed = (addresses: readonly string[]) =>
    addresses.length > 0 && addresses.every((each) => isAllowedPrivate(each) || isPublicAddress(each))

  /** Undefined if DNS has to resolve the host. */
  function literalAddresses(host: string): string[] | undefined {
    if (isIP(host)) return [normalizeAddress(host) ?? host]
    return isLocalhost(host) ? LOOPBACK.filter(isAllowedPrivate) : undefined
  }

  function isForbiddenLiteral(url: URL): boolean {
    const addresses = literalAddresses(bareHost(url))
    return addresses !== undefined && !areAllowed(addresses)
  }

  /** Returns the addresses of the host; throws unless all of them are allowed. */
  async function resolve(url: URL): Promise<string[]> {
    const host = bareHost(url)
    const found = literalAddresses(host) ?? (await query(host))
    const addresses = found.map((text) => normalizeAddress(text) ?? text)
    if (!areAllowed(addresses))
      throw new TargetError(
        `${isIP(host) ? 'The address is not public.' : 'The host name did not resolve to public addresses.'} ` +
          'The operator allows private networks with ADIT_WEBHOOK_PRIVATE_NETWORKS.',
      )
    if (url.protocol !== 'https:' && !addresses.every(isAllowedPrivate))
      throw new TargetError('Requests to public addresses need https.')
    return addresses
  }

  /** Queries DNS directly, because getaddrinfo would block a libuv thread until DNS responds. */
  async function query(host: string): Promise<string[]> {
    const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES })
    if (dnsServers) resolver.setServers(dnsServers)
    const results = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    return results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
  }

  return { resolve, isForbiddenLiteral, allowsHttp: privateNetworks.length > 0 }
}

/** An IPv6 address without its brackets. */
export const bareHost = ({ hostname }: URL) => hostname.replace(/^\[|\]$/g, '')

const isLocalhost = (host: string) => /^(.+\.)?localhost\.?$/.test(host)

/** A lookup for `net.connect` that returns the checked addresses for any host name. */
export function pinnedLookup(addresses: readonly string[]): LookupFunction {
  const all = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, { all: isList }, callback) => {
    const [first] = all
    if (isList) callback(null, all)
    else callback(null, first?.address ?? '', first?.family)
  }
}
