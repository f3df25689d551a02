// Access rules of a tunnel name, as edges get them.
import Type, { type Static } from 'typebox'
import { ALLOWED_NETWORKS_MAX } from '../../lib/credentials/access-limits.ts'
import {
  BASIC_AUTH_LIMITS,
  BASIC_AUTH_PASSWORD_RULE,
  BASIC_AUTH_USER_RULE,
} from '../../lib/credentials/basic-auth.ts'
import { HOST_HEADER_CHARS_MAX, HOST_HEADER_PATTERN, HOST_HEADER_RULE } from '../../lib/net/host-header.ts'

/** An IP address or a network in CIDR notation. The domain checks that it exists. */
const Network = Type.String({
  pattern: '^[0-9a-fA-F:.]{2,45}(/[0-9]{1,3})?$',
  description: 'An IP address, or a network in CIDR notation.',
  examples: ['192.0.2.0/24'],
  'x-rule': 'must be an IP address or a network such as 192.0.2.0/24',
})

export const AllowedNetworks = Type.Array(Network, {
  maxItems: ALLOWED_NETWORKS_MAX,
  description: 'Only requests from these networks are allowed; from any if empty.',
})

export const BasicAuthUser = Type.String({
  minLength: 1,
  maxLength: BASIC_AUTH_LIMITS.userCharsMax,
  pattern: '^[^:\\p{Cc}\\p{Cs}]*$',
  description: 'User name, without a colon.',
  examples: ['preview'],
  'x-rule': `must be ${BASIC_AUTH_USER_RULE}`,
})

export const BasicAuthPassword = Type.String({
  minLength: BASIC_AUTH_LIMITS.passwordCharsMin,
  maxLength: BASIC_AUTH_LIMITS.passwordCharsMax,
  pattern: '^[^\\p{Cc}\\p{Cs}]*$',
  description: 'Absent: the password stays as it is.',
  'x-rule': `must be ${BASIC_AUTH_PASSWORD_RULE}, without control characters`,
})

export const HostHeader = Type.String({
  pattern: HOST_HEADER_PATTERN,
  maxLength: HOST_HEADER_CHARS_MAX,
  description:
    'Host header that local servers get instead of the host of the tunnel: `rewrite` for the host of their ' +
    "client's target, or a host with an optional port.",
  examples: ['rewrite'],
  'x-rule': `must be ${HOST_HEADER_RULE}`,
})

const BasicAuth = Type.Object({
  user: BasicAuthUser,
  hash: Type.String({
    description:
      'The password as `$scrypt$ln=<log2 N>,r=<r>,p=<p>$<salt>$<hash>`, in base64 without padding.',
  }),
})

/** A list of types instead of a union, as in `InstantOrNull`. */
export const AccessRulesOrNull = Type.Unsafe<AccessRules | null>({
  type: ['object', 'null'],
  title: 'AccessRules',
  description:
    'Access rules of the name; null if it has none. A request must satisfy each of them, and the rules ' +
    'that the client of the tunnel asked for.',
  properties: {
    basicAuth: { ...BasicAuth, type: ['object', 'null'], description: 'Null: no password is required.' },
    allowIp: AllowedNetworks,
    hostHeader: HostHeader,
  },
  required: ['basicAuth', 'allowIp'],
})

export interface AccessRules {
  basicAuth: Static<typeof BasicAuth> | null
  allowIp: string[]
  hostHeader?: string
}
