// Rejections of tunnels, as the user of the tunnel client sees them: each has a reason and a remedy.

import type { ClaimResult, ControlPlaneError, VerifyResult } from '../../edge-sdk/index.ts'
import { ARCHIVED_KEY } from '../../lib/credentials/archive.ts'
import { DNS_LABEL_RULE } from '../../lib/net/hostname.ts'
import { type PortRules, portLimitMessage } from '../../lib/net/tcp-ports.ts'
import type { TunnelType } from '../../tunnel-protocol/protocol.ts'

export interface Rejection {
  readonly status: 400 | 401 | 403 | 409 | 429 | 503
  readonly error: string
  readonly message: string
}

export const rejection = (status: Rejection['status'], error: string, message: string): Rejection => ({
  status,
  error,
  message,
})

export const INVALID_NAME = rejection(
  400,
  'invalid_request',
  `Invalid tunnel name (expected ${DNS_LABEL_RULE}).`,
)
export const MISSING_KEY = rejection(
  401,
  'unauthorized',
  'Missing API key (expected "Authorization: Bearer adit_…").',
)
export const EDGE_CREDENTIAL = rejection(
  401,
  'unauthorized',
  'This is an edge credential. Use an API key of a workspace.',
)
export const AGENT_KEY = rejection(
  401,
  'unauthorized',
  'This is the key of an agent, which is valid at /mcp only. Use an API key.',
)
export const TCP_DISABLED = rejection(
  403,
  'tcp_disabled',
  'This edge has no TCP tunnels. The operator enables them with ADIT_EDGE_TCP_PORTS.',
)
/** `file` has the assignments of this edge, which has no control plane. */
export const noFreePort = (file: string) =>
  rejection(
    503,
    'no_free_port',
    'All ports for TCP tunnels of this edge are assigned. The operator can extend ADIT_EDGE_TCP_PORTS, or ' +
      `stop the edge and remove names from ${file}. Retry later.`,
  )
export const tooManyPorts = (names: readonly string[], rules: PortRules) =>
  rejection(429, 'too_many_tunnels', portLimitMessage(names, rules, 'raise ADIT_TCP_PORTS_PER_WORKSPACE'))
export const unsavedPort = ({ message }: Error) =>
  rejection(503, 'unavailable', `The edge cannot store the port of the tunnel: ${message}. Retry later.`)
export const NO_PORT_GRANTED = rejection(
  503,
  'unavailable',
  'The control plane has assigned no port to the name yet. Retry shortly.',
)
/** The tunnel never falls back to another port: clients of this one could reach a different service. */
export const portUnavailable = (port: number, reason: string) =>
  rejection(
    503,
    'port_unavailable',
    `The edge cannot listen on port ${port}, which belongs to this name: ${reason}. The operator of the edge ` +
      'has to stop the program that uses the port, or to release it with `adit admin port release`. Retry later.',
  )
export const HASHING_BUSY = rejection(
  503,
  'unavailable',
  'The edge is hashing the passwords of too many other tunnels. Retry shortly.',
)
export const TOO_MANY_OPENINGS = rejection(
  429,
  'rate_limited',
  'The workspace opens too many tunnels at this edge. Retry in a few seconds.',
)
/** Clients whose tunnels are open get this message too. */
export const quotaUsedUp = (slug: string, until: number) =>
  `The workspace "${slug}" has used up its quota for this month. It renews at ` +
  `${new Date(until).toISOString()}; the operator can raise it with \`adit admin workspace quota ${slug}\`.`
export const quotaExceeded = (slug: string, until: number) =>
  rejection(429, 'quota_exceeded', quotaUsedUp(slug, until))
export const ALREADY_CONNECTED = rejection(
  409,
  'already_connected',
  'This worker of the edge has a connection of the tunnel already.',
)
export const STOPPING = rejection(503, 'unavailable', 'The edge is stopping. Retry shortly.')
export const UNVERIFIED = rejection(
  503,
  'unavailable',
  'The edge cannot reach its control plane to verify the key. Retry shortly.',
)
export const UNCLAIMED = rejection(
  503,
  'unavailable',
  'The edge cannot reach its control plane to claim the name. Until then, it opens only names that were open ' +
    'here, with the same key, in the last 10 minutes. Retry shortly.',
)

const CREDENTIAL_REJECTED = rejection(
  503,
  'unavailable',
  'The control plane rejects the credential of this edge. The operator of the edge has to replace it.',
)

/** A call of the control plane failed; `unreachable` is for one without a response. */
export function failedCall({ status, message }: ControlPlaneError, unreachable: Rejection): Rejection {
  if (status === undefined) return unreachable
  return status === 401 ? CREDENTIAL_REJECTED : rejection(503, 'unavailable', message)
}

/** Later versions of the control plane may have other reasons. */
const KEY_MESSAGES: Record<string, string | undefined> = {
  unknown: 'Unknown API key. Check that it was copied completely.',
  revoked: 'This API key was revoked. Use another key.',
  expired: 'This API key has expired. Use another key.',
  archived: ARCHIVED_KEY,
}

export const invalidKey = ({ reason }: VerifyResult & { valid: false }) =>
  rejection(401, 'unauthorized', KEY_MESSAGES[reason] ?? 'This API key is not valid. Use another key.')

export const notProvisioned = (slug: string) =>
  rejection(
    403,
    'not_provisioned',
    `The workspace "${slug}" is not provisioned for tunnels. The operator provisions it with ` +
      `\`adit admin workspace provision ${slug}\`.`,
  )

/** A client of this edge has the name. */
export function nameTaken(host: string, openType: TunnelType, requestedType: TunnelType): Rejection {
  const message =
    openType === requestedType
      ? `A tunnel is already open at ${host}. Use another name, or --pool to share it with the client that ` +
        'has it.'
      : `The tunnel at ${host} is ${openType === 'tcp' ? 'a TCP' : 'an HTTP'} tunnel, and a name has one type. ` +
        'Use another name.'
  return rejection(409, 'name_taken', message)
}

export const differentRules = (host: string) =>
  rejection(
    409,
    'different_rules',
    `The other clients at ${host} have different access rules. All clients of a pool need the same.`,
  )

export const passwordForTcp = (name: string) =>
  rejection(
    409,
    'different_rules',
    `The name "${name}" needs a password, which a TCP tunnel cannot have. Use another name, or remove the ` +
      'password in the dashboard.',
  )

/** A request has one Authorization header. */
export const secondPassword = (name: string) =>
  rejection(
    409,
    'different_rules',
    `The name "${name}" has a password of its own, set in the dashboard. Open it without --basic-auth.`,
  )

/** Reasons of the control plane, with the code that the client gets. Later versions may have others. */
const CLAIM_REASONS: Record<string, [Rejection['status'], error: string] | undefined> = {
  name_taken: [409, 'name_taken'],
  not_provisioned: [403, 'not_provisioned'],
  invalid_key: [401, 'unauthorized'],
  limit_reached: [429, 'too_many_tunnels'],
  tcp_disabled: [403, 'tcp_disabled'],
  no_port: [503, 'no_free_port'],
  closed: [403, 'closed'],
}

export function rejectedClaim({ reason, message }: ClaimResult & { granted: false }): Rejection {
  const [status, error] = CLAIM_REASONS[reason] ?? [503, 'unavailable']
  return rejection(status, error, message)
}
