// IP addresses as clients, proxies and Node write them, in one canonical form.
import { isIPv4, isIPv6, SocketAddress } from 'node:net'

const BRACKETED = /^\[([^\]]*)\](?::\d{1,5})?$/
const IPV4_WITH_PORT = /^(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}$/
const MAPPED = '::ffff:'

/**
 * Strips port, brackets, zone id and IPv4 mapping, and compresses IPv6. Undefined if the text is not an
 * address.
 */
export function normalizeAddress(text: string): string | undefined {
  if (isIPv4(text)) return text
  const bare = text.trim().replace(BRACKETED, '$1').replace(IPV4_WITH_PORT, '$1').replace(/%.*$/, '')
  if (isIPv4(bare)) return bare
  if (!isIPv6(bare)) return undefined
  const { address } = new SocketAddress({ address: bare, family: 'ipv6' })
  const mapped = address.startsWith(MAPPED) ? address.slice(MAPPED.length) : ''
  return isIPv4(mapped) ? mapped : address
}

/**
 * The network prefix of a canonical IPv6 address, because one client owns many. An IPv4 address is its own
 * prefix.
 */
export function ipPrefix(address: string, bits: 32 | 48 | 64): string {
  if (!isIPv6(address)) return address
  return `${ipv6Groups(address)
    .slice(0, bits / 16)
    .join(':')}::/${bits}`
}

/** The eight groups of a canonical IPv6 address. */
export function ipv6Groups(address: string): string[] {
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const missing = address.includes('::') ? 8 - groups(head).length - groups(tail).length : 0
  return [...groups(head), ...Array<string>(missing).fill('0'), ...groups(tail)]
}

/**
 * The client address by `X-Forwarded-For`, read from the nearest hop up to the first that is not trusted. An
 * entry that is not an address ends the walk: the hop before it counts as the client.
 */
export function forwardedClient(
  peer: string,
  forwarded: string | string[] | undefined,
  isTrusted: (address: string) => boolean,
): string {
  let client = peer
  for (const hop of String(forwarded ?? '')
    .split(',')
    .reverse()) {
    const address = isTrusted(client) ? normalizeAddress(hop) : undefined
    if (address === undefined) break
    client = address
  }
  return client
}
