// Validates the access rules that a tunnel client asks for, at the client and at the edge.
import { ALLOWED_NETWORKS_MAX } from '../lib/credentials/access-limits.ts'
import {
  BASIC_AUTH_PASSWORD_RULE,
  BASIC_AUTH_USER_RULE,
  isBasicAuthPassword,
  isBasicAuthUser,
} from '../lib/credentials/basic-auth.ts'
import { parseNetwork } from '../lib/net/ip-network.ts'
import type { RequestedAccess, TunnelType } from './protocol.ts'

/** The message is for the user of the client. */
export class InvalidAccess extends Error {}

/** Networks get their canonical form and order. Throws InvalidAccess. */
export function parseAccess(type: TunnelType, access: unknown): RequestedAccess {
  if (typeof access !== 'object' || access === null)
    throw new InvalidAccess('"access" must be an object with "basicAuth" and "allowIp".')
  const { basicAuth, allowIp = [], ...others } = access as Record<string, unknown>
  rejectUnknown('access', others, 'basicAuth and allowIp')
  return {
    ...(basicAuth !== undefined && { basicAuth: parseBasicAuth(type, basicAuth) }),
    allowIp: parseAllowIp(allowIp),
  }
}

/** A misspelled rule would leave the tunnel open to everybody. */
export function rejectUnknown(object: string, others: Record<string, unknown>, expected: string): void {
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    throw new InvalidAccess(`Unknown member "${unknown.slice(0, 50)}" of ${object} (expected ${expected}).`)
}

function parseBasicAuth(type: TunnelType, basicAuth: unknown): NonNullable<RequestedAccess['basicAuth']> {
  if (type === 'tcp')
    throw new InvalidAccess(
      'A TCP tunnel cannot have basic authentication, which is a part of HTTP. Limit its addresses instead.',
    )
  const { user, password, ...others } = Object(basicAuth) as Record<string, unknown>
  if (typeof user !== 'string' || !isBasicAuthUser(user))
    throw new InvalidAccess(`Invalid user for basic authentication (expected ${BASIC_AUTH_USER_RULE}).`)
  if (typeof password !== 'string' || !isBasicAuthPassword(password))
    throw new InvalidAccess(
      `Invalid password for basic authentication (expected ${BASIC_AUTH_PASSWORD_RULE}).`,
    )
  rejectUnknown('basicAuth', others, 'user and password')
  return { user, password }
}

function parseAllowIp(allowIp: unknown): string[] {
  if (!Array.isArray(allowIp) || allowIp.length > ALLOWED_NETWORKS_MAX)
    throw new InvalidAccess(`At most ${ALLOWED_NETWORKS_MAX} addresses and networks can be allowed.`)
  const networks = allowIp.map((text) => {
    const network = typeof text === 'string' ? parseNetwork(text) : undefined
    if (!network)
      throw new InvalidAccess(
        `Invalid address or network "${String(text).slice(0, 50)}" ` +
          '(expected CIDR notation, e.g. 203.0.113.0/24 or 2001:db8::/32).',
      )
    return network
  })
  return [...new Set(networks)].sort()
}
