import { networkInterfaces } from 'node:os'

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)

/** The reason to skip tests over IPv6; false if they can run. */
export const ipv6Missing = !hasIpv6 && 'this machine has no IPv6'

/** The IPv4 address of loopback, mapped to IPv6. A listener on :: sees every IPv4 client in this form. */
export const MAPPED = '::ffff:127.0.0.1'
