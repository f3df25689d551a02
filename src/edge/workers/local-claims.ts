// Claims of an edge without a control plane: each is granted, and a TCP tunnel gets the port of its name.
import type { ClaimedTunnel, ClaimResult } from '../../edge-sdk/index.ts'
import { PORT_RENEWAL_MS } from '../../lib/net/tcp-ports.ts'
import { TCP_DISABLED } from '../admission/rejections.ts'
import type { LocalPorts } from '../tcp/local-ports.ts'

/** Reasons of a claim that `rejectedClaim` turns into these errors. */
const REASONS: Record<string, (ClaimResult & { granted: false })['reason'] | undefined> = {
  no_free_port: 'no_port',
  too_many_tunnels: 'limit_reached',
}

export class LocalClaims {
  readonly #ports: LocalPorts | undefined
  readonly #renewal: NodeJS.Timeout | undefined
  readonly #openTunnels: () => Iterable<ClaimedTunnel>

  constructor(ports: LocalPorts | undefined, openTunnels: () => Iterable<ClaimedTunnel>) {
    this.#ports = ports
    this.#openTunnels = openTunnels
    const renew = () => ports?.renew(this.#openPorts()).catch(() => {})
    this.#renewal = ports && setInterval(renew, PORT_RENEWAL_MS).unref()
  }

  async claim({ type, workspace, name }: ClaimedTunnel): Promise<ClaimResult> {
    if (type !== 'tcp') return { granted: true, access: null }
    if (!this.#ports) return { granted: false, reason: 'tcp_disabled', message: TCP_DISABLED.message }
    const port = await this.#ports.assign(workspace, name, this.#openPorts())
    if (typeof port === 'number') return { granted: true, access: null, port }
    // Any other reason becomes 503.
    return { granted: false, reason: REASONS[port.error] ?? 'outdated', message: port.message }
  }

  close(): void {
    clearInterval(this.#renewal)
  }

  /** The URL of an open TCP tunnel has its port. */
  *#openPorts(): Iterable<number> {
    for (const { type, url } of this.#openTunnels()) if (type === 'tcp') yield Number(new URL(url).port)
  }
}
