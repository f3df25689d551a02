// Names of tunnels that the control plane arbitrates: claimed before a tunnel is opened, reported while it is
// open, and held for the client while the control plane is unreachable.
import { type ClaimedTunnel, ControlPlaneError, type TunnelReporter } from '../../edge-sdk/index.ts'
import type { AccessRules } from './access/access-control.ts'
import { type HeldName, HeldNames } from './held-names.ts'
import { failedCall, type Rejection, refusedClaim, UNCLAIMED } from './rejections.ts'
import type { Tunnel } from './tunnel.ts'
import type { CloseReason, TunnelClient } from './tunnel-client.ts'

/** The name may be opened. */
export interface Grant {
  readonly rules: AccessRules | null
  /** The rules have changed since: claim the name again. */
  readonly isStale?: boolean
}

interface PendingClaim extends Grant {
  readonly workspace: string
  readonly name: string
  rules: AccessRules | null
  isStale: boolean
}

/** The client may come back; the name is held for it. */
const TEMPORARY: ReadonlySet<CloseReason> = new Set(['closed', 'disconnected', 'replaced'])

export class NameClaims {
  readonly #reporter: TunnelReporter
  readonly #held = new HeldNames()
  /** Claims of tunnels that are not open yet, by tunnel id. */
  readonly #pending = new Map<string, PendingClaim>()

  constructor(reporter: TunnelReporter) {
    this.#reporter = reporter
  }

  syncNow(): void {
    this.#reporter.syncNow()
  }

  /** What is known of a key and its name if the control plane is unreachable, by the error of a call. */
  heldDespite(error: unknown, key: string, name: string): HeldName | undefined {
    return isUnreachable(error) ? this.#held.find(key, name) : undefined
  }

  async claim(key: string, tunnel: ClaimedTunnel): Promise<Grant | Rejection> {
    const { id, workspace, name } = tunnel
    const pending: PendingClaim = { workspace, name, rules: null, isStale: false }
    this.#pending.set(id, pending)
    try {
      const result = await this.#reporter.claim(tunnel)
      if (result.granted) return Object.assign(pending, { rules: result.access })
      this.#pending.delete(id)
      return refusedClaim(result)
    } catch (error) {
      this.#pending.delete(id)
      if (!(error instanceof ControlPlaneError)) throw error
      return this.heldDespite(error, key, tunnel.name) ?? failedCall(error, UNCLAIMED)
    }
  }

  /** The tunnel is not opened in spite of the grant. */
  release(id: string): void {
    this.#pending.delete(id)
    this.#reporter.closed(id)
  }

  opened(tunnel: ClaimedTunnel, client: TunnelClient, held: HeldName): void {
    this.#pending.delete(tunnel.id)
    this.#reporter.opened(tunnel, () => ({ ...client.totals, streams: client.active }))
    this.#held.opened(client.holder.key, tunnel.name, held)
  }

  closed({ address, access }: Tunnel, { id, holder }: TunnelClient, reason: CloseReason): void {
    this.#reporter.closed(id)
    this.#held.closed(holder.key, address.name, TEMPORARY.has(reason) ? access.nameRules : undefined)
  }

  /** A claim that is pending may have been answered with the rules before. */
  setRules(workspace: string, name: string, rules: AccessRules | null): void {
    for (const claim of this.#pending.values())
      if (claim.workspace === workspace && claim.name === name) claim.isStale = true
    this.#held.setRules(workspace, name, rules)
  }

  forgetKey(keyId: string): void {
    this.#held.forgetKey(keyId)
  }

  /** Revocations may have been missed. */
  forgetClosed(): void {
    this.#held.forgetClosed()
  }

  /** Gives all names up at once, so that clients can open them at other edges while this one drains. */
  stop(): Promise<void> {
    return this.#reporter.stop()
  }
}

/**
 * Not if it rejects the credential of the edge, which may open nothing then, nor if there are too many calls:
 * names are arbitrated as soon as they can be claimed.
 */
const isUnreachable = (error: unknown) =>
  error instanceof ControlPlaneError && (error.status === undefined || error.status >= 500)
