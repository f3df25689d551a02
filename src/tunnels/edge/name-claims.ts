// Names of tunnels that the control plane arbitrates: claimed before a tunnel is opened, reported while it is
// open, and held for the client while the control plane is unreachable.
import { type ClaimedTunnel, ControlPlaneError, type TunnelReporter } from '../../edge-sdk/index.ts'
import type { AccessRules } from './access/access-control.ts'
import { type HeldName, HeldNames } from './held-names.ts'
import { type Rejection, refusedClaim, UNCLAIMED } from './rejections.ts'
import type { Tunnel } from './tunnel.ts'
import type { CloseReason, TunnelClient } from './tunnel-client.ts'

/** The name may be opened. */
export interface Grant {
  readonly rules: AccessRules | null
}

/** The client may come back; the name is held for it. */
const TEMPORARY: ReadonlySet<CloseReason> = new Set(['closed', 'disconnected', 'replaced'])

export class NameClaims {
  readonly #reporter: TunnelReporter
  readonly #held = new HeldNames()

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
    try {
      const result = await this.#reporter.claim(tunnel)
      return result.granted ? { rules: result.access } : refusedClaim(result)
    } catch (error) {
      if (!(error instanceof ControlPlaneError)) throw error
      return this.heldDespite(error, key, tunnel.name) ?? UNCLAIMED
    }
  }

  /** The tunnel is not opened in spite of the grant. */
  release(id: string): void {
    this.#reporter.closed(id)
  }

  opened(tunnel: ClaimedTunnel, client: TunnelClient, held: HeldName): void {
    this.#reporter.opened(tunnel, () => ({ ...client.totals, streams: client.active }))
    this.#held.opened(client.holder.key, tunnel.name, held)
  }

  closed({ address, access }: Tunnel, { id, holder }: TunnelClient, reason: CloseReason): void {
    this.#reporter.closed(id)
    this.#held.closed(holder.key, address.name, TEMPORARY.has(reason) ? access.nameRules : undefined)
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

/** Not if it rejects the credential of the edge: then the edge may open nothing. */
const isUnreachable = (error: unknown) =>
  error instanceof ControlPlaneError && (error.status === undefined || error.status >= 500)
