// Names of tunnels that the control plane arbitrates: claimed before a tunnel is opened, reported while it is
// open, and kept for the client while the control plane is unreachable.
import { type ClaimedTunnel, ControlPlaneError, type TunnelReporter } from '../../edge-sdk/index.ts'
import type { AccessRules } from '../access/access-control.ts'
import type { CloseReason, TunnelClient } from '../tunnels/client.ts'
import type { CountRule } from '../tunnels/count.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { type RecentName, RecentNames } from './recent-names.ts'
import { failedCall, type Rejection, rejectedClaim, UNCLAIMED } from './rejections.ts'

/** The name may be opened. */
export interface Grant {
  readonly rules: AccessRules | null
  /** The port of a TCP tunnel. */
  readonly port?: number | undefined
  /** The rules have changed since the grant, so the name has to be claimed again. */
  readonly isStale?: boolean
  readonly count?: CountRule
  /** See `Opened`. */
  readonly edge?: string | undefined
  readonly edges?: readonly string[] | undefined
}

interface PendingClaim extends Grant {
  readonly workspace: string
  readonly name: string
  rules: AccessRules | null
  port?: number | undefined
  isStale: boolean
}

/** After these, the client may come back, and the name is kept for it. */
const TEMPORARY: ReadonlySet<CloseReason> = new Set(['closed', 'disconnected', 'replaced'])

export class NameClaims {
  readonly #reporter: TunnelReporter
  readonly #recent = new RecentNames()
  /** Claims of tunnels that are not open yet, by tunnel id. */
  readonly #pending = new Map<string, PendingClaim>()

  constructor(reporter: TunnelReporter) {
    this.#reporter = reporter
  }

  syncNow(): void {
    this.#reporter.syncNow()
  }

  /** The recent name of a key if a call failed with `error` because the control plane is unreachable. */
  recentIfUnreachable(error: unknown, key: string, name: string): RecentName | undefined {
    return isUnreachable(error) ? this.#recent.find(key, name) : undefined
  }

  async claim(key: string, tunnel: ClaimedTunnel): Promise<Grant | Rejection> {
    const { id, workspace, name } = tunnel
    const pending: PendingClaim = { workspace, name, rules: null, isStale: false }
    this.#pending.set(id, pending)
    try {
      const result = await this.#reporter.claim(tunnel, key)
      if (result.granted) {
        const { access: rules, port, counts, countsFrom, edge, edges } = result
        return Object.assign(pending, { rules, port, count: { counts, countsFrom }, edge, edges })
      }
      this.#pending.delete(id)
      return rejectedClaim(result)
    } catch (error) {
      this.#pending.delete(id)
      if (!(error instanceof ControlPlaneError)) throw error
      return this.recentIfUnreachable(error, key, tunnel.name) ?? failedCall(error, UNCLAIMED)
    }
  }

  /** The tunnel is not opened in spite of the grant. */
  cancel(id: string): void {
    this.#pending.delete(id)
    this.#reporter.closed(id)
  }

  opened(tunnel: ClaimedTunnel, client: TunnelClient, recent: RecentName): void {
    this.#pending.delete(tunnel.id)
    this.#reporter.opened(tunnel, client.key.secret, () => ({ ...client.totals, streams: client.active }))
    this.#recent.opened(client.key.secret, tunnel.name, recent)
  }

  closed({ address, access }: Tunnel, { id, key }: TunnelClient, reason: CloseReason): void {
    this.#reporter.closed(id)
    this.#recent.closed(key.secret, address.name, TEMPORARY.has(reason) ? access.nameRules : undefined)
  }

  /** The response to a pending claim may still have the previous rules. */
  setRules(workspace: string, name: string, rules: AccessRules | null): void {
    for (const claim of this.#pending.values())
      if (claim.workspace === workspace && claim.name === name) claim.isStale = true
    this.#recent.setRules(workspace, name, rules)
  }

  removeKeys(matches: (key: RecentName['key']) => boolean): void {
    this.#recent.removeKeys(matches)
  }

  /** Revocations may have been missed. */
  removeClosed(): void {
    this.#recent.removeClosed()
  }

  mayCarry(): boolean {
    return this.#reporter.mayCarry()
  }

  /** Releases all names at once, so that clients can open them at other edges while this one drains. */
  release(): Promise<void> {
    return this.#reporter.release()
  }

  /** This edge carries no traffic any more. */
  stop(): Promise<void> {
    return this.#reporter.stop()
  }
}

/**
 * Other errors have no fallback: an edge whose credential is rejected (401) may open nothing, and after too
 * many calls (429) the name can be claimed later.
 */
const isUnreachable = (error: unknown) =>
  error instanceof ControlPlaneError && (error.status === undefined || error.status >= 500)
