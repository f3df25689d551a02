// Finds the tunnel of a request, here or at another edge, and checks whether its access rules and the quota
// of its workspace allow the request.
import type { IncomingMessage } from 'node:http'
import { quotaExceeded } from '../access/denial.ts'
import type { VisitorError } from '../error-responses/causes.ts'
import type { Found, RemoteTunnels } from '../peers/remote-tunnels.ts'
import type { Registry } from '../tunnels/registry.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { UpstreamClient } from '../tunnels/upstream-client.ts'
import type { ClientAddresses } from './client-address.ts'

export type OpenTunnel = Tunnel<UpstreamClient>

export type SendError = (error: VisitorError) => void

/** A request whose response has not begun. */
export interface PendingRequest {
  isPending(): boolean
  readonly sendError: SendError
}

export interface AuthorizationOptions {
  readonly registry: Registry
  readonly addresses: ClientAddresses
  /** Tunnels at other edges; undefined if this edge does not forward. */
  readonly remote: Pick<RemoteTunnels, 'find' | 'hasOther' | 'onMoved'> | undefined
  /** Until when the traffic of a workspace is rejected; undefined if it is accepted. */
  quotaReachedUntil(workspace: string): number | undefined
}

type Proceed = (tunnel: OpenTunnel | undefined) => void

/** `unreachable`: see `Found`. */
type FoundTunnel = OpenTunnel | 'unreachable' | undefined

export interface Authorization {
  /**
   * The tunnel of a host, at this edge if possible. Others than `failed` are preferred, and those that
   * respond.
   */
  findTunnel(host: string, failed?: OpenTunnel): FoundTunnel | Promise<FoundTunnel>
  /** Until when the quota of its workspace rejects requests; undefined if they are accepted. */
  findQuotaEnd(tunnel: OpenTunnel): number | undefined
  /**
   * Calls `proceed` with the tunnel if its access rules allow the request, at once if no password is verified
   * and no other edge is asked. A tunnel other than `failed` is preferred, and one whose clients respond.
   */
  authorize(
    host: string,
    request: IncomingMessage,
    pending: PendingRequest,
    proceed: Proceed,
    failed?: OpenTunnel,
  ): void
}

export function createAuthorization(options: AuthorizationOptions): Authorization {
  const { registry, remote, addresses } = options

  function findTunnel(host: string, failed?: OpenTunnel): FoundTunnel | Promise<FoundTunnel> {
    const local = registry.atHost(host)
    if (!remote || (local?.isAvailable && local !== failed && !local.isSilent)) return local
    const choose = (found: Found) =>
      typeof found === 'object' || !local || (found && !local.isAvailable) ? found : local
    const found = remote.find(host, failed)
    return found instanceof Promise ? found.then(choose) : choose(found)
  }

  function findQuotaEnd(tunnel: OpenTunnel): number | undefined {
    const until = options.quotaReachedUntil(tunnel.workspace) ?? tunnel.quotaReachedUntil
    return until !== undefined && until > Date.now() ? until : undefined
  }

  const authorize: Authorization['authorize'] = (host, request, pending, proceed, failed) => {
    const proceedAt = (found: FoundTunnel) =>
      found === 'unreachable'
        ? pending.sendError({ cause: 'tunnel_unreachable' })
        : check(found, host, request, pending, proceed, failed)
    const found = findTunnel(host, failed)
    if (!(found instanceof Promise)) proceedAt(found)
    else void found.then((tunnel) => pending.isPending() && proceedAt(tunnel))
  }

  function check(
    tunnel: OpenTunnel | undefined,
    host: string,
    request: IncomingMessage,
    pending: PendingRequest,
    proceed: Proceed,
    failed?: OpenTunnel,
  ): void {
    const access = tunnel?.access
    const until = tunnel && findQuotaEnd(tunnel)
    if (until !== undefined) {
      pending.sendError(quotaExceeded(until, Date.now()))
      return
    }
    const result = access?.hasRules ? access.check(request, addresses.ofRequest(request)) : undefined
    if (result instanceof Promise)
      void result.then((denial) => {
        if (!pending.isPending()) return
        if (denial) pending.sendError(denial)
        else authorize(host, request, pending, proceed, failed)
      })
    else if (result) pending.sendError(result)
    else proceed(tunnel)
  }

  return { findTunnel, findQuotaEnd, authorize }
}
