// Decides whether a client may open a tunnel with a key and a name.

import { randomBytes } from 'node:crypto'
import {
  type ClaimedTunnel,
  ControlPlaneError,
  type Meter,
  type Verifier,
  type VerifyResult,
} from '../../edge-sdk/index.ts'
import { isDnsLabel } from '../../lib/net/hostname.ts'
import { TokenBuckets } from '../../lib/token-buckets.ts'
import type { TunnelRequest, TunnelType } from '../../tunnel-protocol/protocol.ts'
import type { Connection } from '../../yamux/index.ts'
import { type AccessRules, areSameRules, NO_RULES } from '../access/access-control.ts'
import { RuleHasher } from '../access/rule-hasher.ts'
import type { TcpListener } from '../tcp/listeners.ts'
import type { TcpTunnels } from '../tcp/tunnels.ts'
import { type Registry, secretHash } from '../tunnels/registry.ts'
import type { Grant, NameClaims } from './name-claims.ts'
import { randomName } from './names.ts'
import {
  AGENT_KEY,
  ALREADY_CONNECTED,
  differentRules,
  EDGE_CREDENTIAL,
  failedCall,
  HASHING_BUSY,
  INVALID_NAME,
  invalidKey,
  MISSING_KEY,
  nameTaken,
  notProvisioned,
  passwordForTcp,
  quotaExceeded,
  type Rejection,
  rejection,
  STOPPING,
  secondPassword,
  TCP_DISABLED,
  TOO_MANY_OPENINGS,
  UNVERIFIED,
} from './rejections.ts'

/**
 * How often a workspace may open tunnels. Each opening costs the control plane a transaction, and this edge
 * an entry in `RecentNames`.
 */
const OPENINGS = { burst: 1_000, refillMs: 100 }
const WORKSPACES_MAX = 10_000

interface AdmissionOptions {
  readonly verifier: Pick<Verifier, 'verify' | 'quotaReachedUntil'>
  readonly registry: Registry
  readonly meter: Pick<Meter, 'rejected'> | undefined
  /** Undefined without a control plane: then this edge decides alone. */
  readonly names: NameClaims | undefined
  /** Undefined if this edge has no TCP tunnels. */
  readonly tcpTunnels: Pick<TcpTunnels, 'listen'> | undefined
  /** The public URL of a tunnel. The port of a TCP tunnel is undefined until its listener is open. */
  publicUrl(host: string, type: TunnelType, tcpPort: number | undefined): string
}

/** The verification result of a valid key. */
type Valid = VerifyResult & { valid: true }

/** A client that wants to open a tunnel. */
interface ConnectingClient {
  readonly key: string | undefined
  /** The IP address of the client. */
  readonly address: string
  readonly request: TunnelRequest
  /** The connection of the tunnel; undefined if the client is gone. */
  accept(): Connection | undefined
}

/** Opens the tunnel, or returns why not. */
export type AdmitTunnel = (client: ConnectingClient) => Promise<Rejection | undefined>

/** A tunnel that is being opened, with the results of its asynchronous steps so far. */
interface Opening {
  readonly id: string
  readonly key: string
  readonly name: string
  readonly client: ConnectingClient
  readonly openedAt: string
  listener?: TcpListener | undefined
  grant?: Grant
  /** Access rules of the client, hashed. */
  rules?: AccessRules | undefined
  /** The rules that the open tunnel had when `rules` was hashed: the same password gets the same hash. */
  tunnelRules?: AccessRules | undefined
  isCounted?: boolean
  isListenerUsed?: boolean
  isOpen?: boolean
}

export function createAdmission(options: AdmissionOptions): AdmitTunnel {
  const { verifier, registry, meter, names, tcpTunnels, publicUrl } = options
  const hasher = new RuleHasher()
  const openings = new TokenBuckets(WORKSPACES_MAX)

  /** While the control plane is unreachable, a key is accepted for a name that it had open here recently. */
  async function verify(opening: Opening): Promise<VerifyResult> {
    try {
      return await verifier.verify(opening.key)
    } catch (error) {
      const recent = names?.recentIfUnreachable(error, opening.key, opening.name)
      if (!recent) throw error
      opening.grant ??= recent
      return recent.key
    }
  }

  /** Why a client with a valid key may not open the tunnel. */
  function findRejection({ workspace }: Valid, host: string, request: TunnelRequest): Rejection | undefined {
    const { type = 'http', resume } = request
    if (!workspace.provisioned) return notProvisioned(workspace.slug)
    const until = verifier.quotaReachedUntil(workspace.slug)
    // A client that reconnects keeps its tunnel.
    if (until !== undefined && !registry.hasClient(host, resume)) return quotaExceeded(workspace.slug, until)
    if (type === 'tcp' && !tcpTunnels) return TCP_DISABLED
    if (registry.isStopping) return STOPPING
    const closure = registry.findClosure(request)
    if (closure) return rejection(403, 'closed', closure.message)
    // A reconnect replaces the client's own connection, so it does not count.
    const limit = registry.hasClient(host, resume) ? undefined : registry.limitReached(workspace.slug)
    if (limit) return rejection(429, 'too_many_tunnels', limit)
    if (registry.mayServe(host, type, request)) return undefined
    return nameTaken(host, registry.atHost(host)?.type ?? type, type)
  }

  /** The next asynchronous step; undefined if all are done. */
  function nextStep(opening: Opening, tunnel: ClaimedTunnel, host: string): Step | undefined {
    const { client, key } = opening
    const { access } = client.request
    const existing = registry.atHost(host)
    // A name that is open here is claimed already.
    if (names && !existing && (!opening.grant || opening.grant.isStale))
      return async () => {
        const result = await names.claim(key, tunnel)
        if ('error' in result) return result
        opening.grant = result
        return undefined
      }
    if (tunnel.type === 'tcp' && !existing && tcpTunnels && !opening.listener)
      return async () => {
        const result = await tcpTunnels.listen({ ...tunnel, host }, opening.grant?.port)
        if ('error' in result) return result
        opening.listener = result
        return undefined
      }
    const currentRules = existing?.access.clientRules
    if (access && (!opening.rules || opening.tunnelRules !== currentRules))
      return async () => {
        opening.tunnelRules = currentRules
        opening.rules = await hasher.hash({ workspace: tunnel.workspace, host }, access, currentRules)
        return opening.rules ? undefined : HASHING_BUSY
      }
    return undefined
  }

  /** Undefined on success, and if the client has disconnected. */
  function connect(opening: Opening, key: Valid, tunnel: ClaimedTunnel, host: string): Rejection | undefined {
    const { id, client, listener, grant, rules = NO_RULES } = opening
    const { request } = client
    const existing = registry.atHost(host)
    const shared = registry.rulesAt(host, request.resume)
    if (shared && !areSameRules(rules, shared)) return differentRules(host)
    const nameRules = existing ? existing.access.nameRules : (grant?.rules ?? NO_RULES)
    if (nameRules.basicAuth && tunnel.type === 'tcp') return passwordForTcp(tunnel.name)
    if (nameRules.basicAuth && rules.basicAuth) return secondPassword(tunnel.name)
    const connection = client.accept()
    if (!connection) return undefined
    const { type, name, url, keyId, workspace } = tunnel
    const { edge, edges } = grant ?? {}
    const address = existing?.address ?? { type, name, host, url, listener, edge, edges }
    const connected = registry.connect(address, {
      id,
      connection,
      request,
      rules,
      address: client.address,
      key: { secret: opening.key, id: keyId, workspace },
      nameRules,
      count: grant?.count ?? {},
    })
    names?.opened(tunnel, connected.client, {
      key,
      rules: connected.tunnel.access.nameRules,
      port: connected.tunnel.address.listener?.port,
    })
    connected.client.setQuotaReached(verifier.quotaReachedUntil(workspace))
    opening.isListenerUsed = existing === undefined
    opening.isOpen = true
    return undefined
  }

  async function open(opening: Opening): Promise<Rejection | undefined> {
    const { name, client } = opening
    for (;;) {
      const result = await verify(opening)
      // After each asynchronous step the key is verified again, and from there `connect` is reached without
      // an await: a revocation is seen here, or finds the tunnel in the registry.
      if (!result.valid) return invalidKey(result)
      const { slug, tunnelBase } = result.workspace
      const host = `${name}.${tunnelBase}`
      const { extra, session } = client.request
      if (extra && registry.isServedBy(host, session)) return ALREADY_CONNECTED
      if (!opening.isCounted && openings.take([{ name: slug, ...OPENINGS }], performance.now()) > 0)
        return TOO_MANY_OPENINGS
      opening.isCounted = true
      const url =
        registry.atHost(host)?.address.url ??
        publicUrl(host, client.request.type ?? 'http', opening.listener?.port)
      const tunnel = describe(opening, result, url)
      let reason = findRejection(result, host, client.request)
      const step = reason ? undefined : nextStep(opening, tunnel, host)
      reason ??= step ? await step() : connect(opening, result, tunnel, host)
      // Nobody notices that an extra connection is missing.
      if (reason && !extra) meter?.rejected(slug)
      if (reason || !step) return reason
    }
  }

  return async (client) => {
    const { key, request } = client
    const { name = randomName(), access } = request
    if (!isDnsLabel(name)) return INVALID_NAME
    if (!key) return MISSING_KEY
    if (key.startsWith('adit_edge_')) return EDGE_CREDENTIAL
    if (key.startsWith('adit_agent_')) return AGENT_KEY
    const id = `tun_${randomBytes(12).toString('hex')}`
    const rules = access ? undefined : NO_RULES
    const opening: Opening = { id, key, name, client, openedAt: new Date().toISOString(), rules }
    try {
      return await open(opening)
    } catch (error) {
      if (error instanceof ControlPlaneError) return failedCall(error, UNVERIFIED)
      throw error
    } finally {
      // If another client opened the same tunnel meanwhile, the listener of that client is used.
      if (!opening.isListenerUsed) opening.listener?.close()
      if (opening.grant && !opening.isOpen) names?.cancel(id)
    }
  }
}

/** Returns why the tunnel cannot be opened. */
type Step = () => Promise<Rejection | undefined>

/** The tunnel as the control plane lists it. */
function describe({ id, name, client, openedAt }: Opening, key: Valid, url: string): ClaimedTunnel {
  const { type = 'http', pool = false, client: software, resume, session, access } = client.request
  return {
    ...{ id, name, type, pool, url, openedAt },
    workspace: key.workspace.slug,
    keyId: key.keyId,
    clientAddress: client.address,
    ...(software !== undefined && { clientVersion: software }),
    ...(access && {
      access: { basicAuth: access.basicAuth !== undefined, allowIp: [...(access.allowIp ?? [])] },
    }),
    ...(resume !== undefined && { resume: secretHash(resume) }),
    ...(session !== undefined && { session: secretHash(session) }),
  }
}
