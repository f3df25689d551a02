// Decides for which hosts the proxy in front may obtain a certificate: those of open tunnels, tunnel domains,
// and names that workspaces have reserved or used lately. Caddy asks before it does (`on_demand_tls`). CAs
// limit how many they issue, so a workspace has a limit.
import { ControlPlaneError, type HostResult } from '../../edge-sdk/index.ts'
import { isDnsLabel } from '../../net/hostname.ts'
import { BoundedMap } from './bounded-map.ts'
import { RateLimit } from './rate-limit.ts'
import type { Registry } from './registry.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const HOST_CHARS_MAX = 253
/** Anyone can cause lookups, by TLS handshakes with any server name. */
const LOOKUPS = { perSecond: 20, burst: 100 }
const KNOWN_FOR_MS = 60_000
const KNOWN_HOSTS_MAX = 1_000

export interface TlsAskOptions {
  readonly registry: Pick<Registry, 'atHost'>
  findHost(host: string): Promise<HostResult>
  /** Hosts of a workspace within 24 hours. */
  readonly certificatesPerDay: number
  /** Called when a workspace reaches the limit. */
  onCertificatesLimited(workspace: string): void
}

export interface TlsAnswer {
  /** Any status but 200 means that no certificate may be obtained. */
  readonly status: 200 | 404 | 429 | 503
  readonly message: string
}

export class TlsAsk {
  readonly #options: TlsAskOptions
  readonly #allowed = new Map<string, AllowedHosts>()
  readonly #known = new BoundedMap<string, { workspace: string | null; until: number }>(KNOWN_HOSTS_MAX)
  readonly #clock: () => number
  readonly #lookups = new RateLimit(LOOKUPS)
  /** Apart, so that a flood of unknown hosts does not keep out those that have been found before. */
  readonly #repeatedLookups = new RateLimit(LOOKUPS)

  constructor(options: TlsAskOptions, clock: () => number = () => performance.now()) {
    this.#options = options
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
      const found = await this.#find(host)
      if (found === undefined) return { status: 429, message: 'Too many unknown hosts. Retry shortly.' }
      if (!found.found) return { status: 404, message: `No tunnel is open at ${host}.` }
      return found.workspace === null ? allowed(host) : this.#allow(found.workspace, host)
    } catch (error) {
      if (!(error instanceof ControlPlaneError)) throw error
      return { status: 503, message: `No tunnel is open at ${host}, and ${failureOf(error)}` }
    }
  }

  /** Undefined if there are too many lookups. Only hosts that exist are cached: there are few of them. */
  async #find(host: string): Promise<HostResult | undefined> {
    const now = this.#clock()
    const known = this.#known.get(host)
    if (known && known.until > now) return { found: true, workspace: known.workspace }
    const lookups = known ? this.#repeatedLookups : this.#lookups
    if (!lookups.take(now)) return undefined
    const result = await this.#options.findHost(host)
    if (result.found) this.#known.set(host, { workspace: result.workspace, until: now + KNOWN_FOR_MS })
    else this.#known.delete(host)
    return result
  }

  #allow(workspace: string, host: string): TlsAnswer {
    const { certificatesPerDay, onCertificatesLimited } = this.#options
    let hosts = this.#allowed.get(workspace)
    if (!hosts) {
      hosts = new AllowedHosts(certificatesPerDay, () => onCertificatesLimited(workspace))
      this.#allowed.set(workspace, hosts)
    }
    if (hosts.allow(host, this.#clock())) return allowed(host)
    return {
      status: 429,
      message:
        `The workspace "${workspace}" has its limit of ${certificatesPerDay} hosts with certificates in ` +
        '24 hours (ADIT_EDGE_CERTIFICATES_PER_DAY).',
    }
  }
}

/** Why the control plane could not say whether the host exists. */
function failureOf({ status, message }: ControlPlaneError): string {
  if (status === undefined) return 'the control plane is unreachable.'
  if (status === 401) return 'the control plane rejects the credential of this edge.'
  return `the control plane could not be asked: ${message}`
}

const allowed = (host: string): TlsAnswer => ({ status: 200, message: `${host} may have a certificate.` })

/** The hosts of a workspace that were allowed within the last 24 hours, the latest one last. */
class AllowedHosts {
  readonly #max: number
  readonly #onLimited: () => void
  readonly #allowedAt = new Map<string, number>()
  #isLimited = false

  constructor(max: number, onLimited: () => void) {
    this.#max = max
    this.#onLimited = onLimited
  }

  allow(host: string, now: number): boolean {
    for (const [oldest, allowedAt] of this.#allowedAt) {
      if (now - allowedAt < DAY_MS) break
      this.#allowedAt.delete(oldest)
    }
    const isNew = !this.#allowedAt.delete(host)
    if (isNew && this.#allowedAt.size >= this.#max) {
      if (!this.#isLimited) this.#onLimited()
      this.#isLimited = true
      return false
    }
    if (isNew) this.#isLimited = false
    this.#allowedAt.set(host, now)
    return true
  }
}
