// Decides for which hosts the proxy in front may obtain a certificate: those of open tunnels, tunnel domains,
// and names that workspaces have reserved or used lately. Caddy asks first (`on_demand_tls`). CAs limit how
// many certificates they issue, so each workspace has a limit, and so has the edge.
import { ControlPlaneError, type HostResult } from '../../edge-sdk/index.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { isDnsLabel } from '../../lib/net/hostname.ts'
import { TokenBuckets } from '../../lib/token-buckets.ts'
import type { TunnelType } from '../../tunnel-protocol/protocol.ts'
import { CertificateBudget, type CertificateLimits } from './budget.ts'

const HOST_CHARS_MAX = 253
/** Anyone can cause lookups, by TLS handshakes with any server name. */
const LOOKUPS = { name: 'lookups', burst: 100, refillMs: 50 }
/** A separate limit: a flood of unknown hosts must not block hosts that were found before. */
const REPEATED_LOOKUPS = { ...LOOKUPS, name: 'repeated lookups' }
const HOST_RETENTION_MS = 60_000
const CACHED_HOSTS_MAX = 1_000

interface TlsAskOptions extends CertificateLimits {
  readonly registry: { atHost(host: string): { type: TunnelType; workspace: string } | undefined }
  findHost(host: string): Promise<HostResult>
}

export interface TlsAnswer {
  /** Any status but 200 means that no certificate may be obtained. */
  readonly status: 200 | 404 | 429 | 503
  readonly message: string
}

export class TlsAsk {
  readonly #options: TlsAskOptions
  readonly #budget: CertificateBudget
  readonly #hosts = new BoundedMap<string, { workspace: string | null; until: number }>(CACHED_HOSTS_MAX)
  readonly #clock: () => number
  readonly #lookups = new TokenBuckets(2)

  constructor(options: TlsAskOptions, clock: () => number = () => performance.now()) {
    this.#options = options
    this.#budget = new CertificateBudget(options)
    this.#clock = clock
  }

  async ask(domain: string): Promise<TlsAnswer> {
    const host = domain.toLowerCase().replace(/\.$/, '')
    if (host.length > HOST_CHARS_MAX || !host.split('.').every(isDnsLabel))
      return { status: 404, message: 'The domain is not a host name.' }
    const tunnel = this.#options.registry.atHost(host)
    if (tunnel?.type === 'http') return this.#allow(tunnel.workspace, host)
    // Connections of a TCP tunnel do not pass the proxy.
    if (tunnel) return { status: 404, message: `The tunnel at ${host} is a TCP tunnel.` }
    try {
      const result = await this.#find(host)
      if (result === undefined) return { status: 429, message: 'Too many unknown hosts. Retry shortly.' }
      if (!result.found) return { status: 404, message: `No tunnel is open at ${host}.` }
      return result.workspace === null ? allowed(host) : this.#allow(result.workspace, host)
    } catch (error) {
      if (!(error instanceof ControlPlaneError)) throw error
      return { status: 503, message: `No tunnel is open at ${host}, and ${describeFailure(error)}` }
    }
  }

  /** Undefined if there are too many lookups. Only hosts that exist are cached: there are few of them. */
  async #find(host: string): Promise<HostResult | undefined> {
    const now = this.#clock()
    const cached = this.#hosts.get(host)
    if (cached && cached.until > now) return { found: true, workspace: cached.workspace }
    if (this.#lookups.take([cached ? REPEATED_LOOKUPS : LOOKUPS], now) > 0) return undefined
    const result = await this.#options.findHost(host)
    if (result.found) this.#hosts.set(host, { workspace: result.workspace, until: now + HOST_RETENTION_MS })
    else this.#hosts.delete(host)
    return result
  }

  #allow(workspace: string, host: string): TlsAnswer {
    const setting = this.#budget.consume(workspace, host, this.#clock())
    if (!setting) return allowed(host)
    const message = `The workspace "${workspace}" has its limit of new hosts with certificates in 24 hours`
    return { status: 429, message: `${message} (${setting}).` }
  }
}

/** Why the control plane could not say whether the host exists. */
function describeFailure({ status, message }: ControlPlaneError): string {
  if (status === undefined) return 'the control plane is unreachable.'
  if (status === 401) return 'the control plane rejects the credential of this edge.'
  return `the control plane could not be asked: ${message}`
}

const allowed = (host: string): TlsAnswer => ({ status: 200, message: `${host} may have a certificate.` })
