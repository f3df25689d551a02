// Decides whether a client may open a tunnel with a key and a name. Every rejection has a reason and a remedy.
import { ControlPlaneError, type Meter, type Verifier, type VerifyResult } from '../../edge-sdk/index.ts'
import { DNS_LABEL_RULE } from '../../net/hostname.ts'
import type { Connection } from '../../yamux/index.ts'
import type { TunnelRequest } from '../protocol.ts'
import { type AccessRules, areSameRules, NO_RULES } from './access/access-control.ts'
import { RuleHasher } from './access/rule-hasher.ts'
import { isTunnelName, randomName } from './names.ts'
import type { Registry } from './registry.ts'
import type { TcpListener } from './tcp-ports.ts'

export interface Rejection {
  readonly status: 400 | 401 | 403 | 409 | 429 | 503
  readonly error: string
  readonly message: string
}

export interface AdmissionOptions {
  readonly verifier: Pick<Verifier, 'verify'>
  readonly registry: Registry
  readonly meter: Pick<Meter, 'refused'> | undefined
  /** Listens for the connections of a TCP tunnel. Undefined if this edge has no TCP tunnels. */
  readonly listen: ((host: string) => Promise<TcpListener | undefined>) | undefined
  /** The public URL of a tunnel. */
  urlOf(host: string, tcpPort: number | undefined): string
}

const KEY_MESSAGES: Record<(VerifyResult & { valid: false })['reason'], string> = {
  unknown: 'Unknown API key. Check that it was copied completely.',
  revoked: 'This API key was revoked. Use another key.',
  expired: 'This API key has expired. Use another key.',
}
const EDGE_CREDENTIAL = 'adit_edge_'
const NO_FREE_PORT = rejection(
  503,
  'no_free_port',
  'All ports for TCP tunnels of this edge are in use. Retry later.',
)
const HASHING_BUSY = rejection(
  503,
  'unavailable',
  'The edge is hashing the passwords of too many other tunnels. Retry shortly.',
)
const STOPPING = rejection(503, 'unavailable', 'The edge is stopping. Retry shortly.')
const UNREACHABLE = rejection(
  503,
  'unavailable',
  'The edge cannot reach its control plane to verify the key. Retry shortly.',
)

type Valid = VerifyResult & { valid: true }

/**
 * Opens the tunnel over the connection that `connect` makes, or returns why not. `connect` returns undefined
 * if the client is gone.
 */
export type OpenTunnel = (
  key: string | undefined,
  request: TunnelRequest,
  connect: () => Connection | undefined,
) => Promise<Rejection | undefined>

export function createAdmission(options: AdmissionOptions): OpenTunnel {
  const { verifier, registry, meter, listen, urlOf } = options
  const hasher = new RuleHasher()

  /** Why the holder of a valid key may not open the tunnel. */
  function reject({ workspace }: Valid, host: string, request: TunnelRequest): Rejection | undefined {
    const { type = 'http', resume } = request
    if (!workspace.provisioned)
      return rejection(
        403,
        'not_provisioned',
        `The workspace "${workspace.slug}" is not provisioned for tunnels. The operator provisions it with ` +
          `\`adit admin workspace provision ${workspace.slug}\`.`,
      )
    if (type === 'tcp' && !listen)
      return rejection(
        403,
        'tcp_disabled',
        'This edge has no TCP tunnels. The operator enables them with ADIT_EDGE_TCP_PORTS.',
      )
    if (registry.isStopping) return STOPPING
    // A client that replaces its own connection is no additional one.
    const limit = registry.hasClient(host, resume) ? undefined : registry.limitReached(workspace.slug)
    if (limit) return rejection(429, 'too_many_tunnels', limit)
    if (registry.mayServe(host, type, request)) return undefined
    return rejection(409, 'name_taken', `A tunnel is already open at ${host}.`)
  }

  return async (key, request, connect) => {
    const { type = 'http', name = randomName(), access, resume } = request
    if (!isTunnelName(name))
      return rejection(400, 'invalid_request', `Invalid tunnel name (expected ${DNS_LABEL_RULE})`)
    if (!key)
      return rejection(401, 'unauthorized', 'Missing API key (expected "Authorization: Bearer adit_…")')
    if (key.startsWith(EDGE_CREDENTIAL))
      return rejection(401, 'unauthorized', 'This is an edge credential. Use an API key of a workspace.')
    let listener: TcpListener | undefined
    let isUsed = false
    let rules: AccessRules | undefined = access ? undefined : NO_RULES
    let rulesOfOthers: AccessRules | undefined
    try {
      for (;;) {
        const result = await verifier.verify(key)
        // Synchronous from here on, so that a later revocation finds the tunnel in the registry.
        if (!result.valid) return rejection(401, 'unauthorized', KEY_MESSAGES[result.reason])
        const { keyId, workspace } = result
        const host = `${name}.${workspace.tunnelBase}`
        const rejected = reject(result, host, request)
        if (rejected) {
          meter?.refused(workspace.slug)
          return rejected
        }
        const isNew = registry.atHost(host) === undefined
        if (type === 'tcp' && isNew && listen && !listener) {
          listener = await listen(host)
          if (!listener) return NO_FREE_PORT
          // The key may have been revoked meanwhile.
          continue
        }
        const current = registry.rulesAt(host, resume)
        if (!rules || (access && rulesOfOthers !== current)) {
          rulesOfOthers = current
          rules = await hasher.hash(workspace.slug, access ?? {}, current)
          if (!rules) return HASHING_BUSY
          continue
        }
        if (current && !areSameRules(rules, current)) return differentRules(host)
        const connection = connect()
        if (!connection) return undefined
        isUsed = isNew
        const address = { type, name, host, url: urlOf(host, listener?.port), listener }
        const holder = { key, keyId, workspace: workspace.slug }
        registry.connect(address, holder, connection, request, rules)
        return undefined
      }
    } catch (error) {
      if (error instanceof ControlPlaneError) return UNREACHABLE
      throw error
    } finally {
      // Also if another client opened the same tunnel meanwhile.
      if (!isUsed) listener?.close()
    }
  }
}

const differentRules = (host: string) =>
  rejection(
    409,
    'different_rules',
    `The other clients at ${host} have different access rules. All clients of a pool need the same.`,
  )

function rejection(status: Rejection['status'], error: string, message: string): Rejection {
  return { status, error, message }
}
