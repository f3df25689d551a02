// Limits for how many hosts the proxy may obtain certificates within 24 hours. A certificate cannot be taken
// back, so no host displaces another. Instead, a workspace gets a new host only while it has less than a
// share of what is left, so that something is left for others.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { KeyedCounter } from '../../lib/collections/keyed-counter.ts'
import { DAY_MS } from '../../lib/time.ts'

/** A workspace gets at most this share of the hosts that remain in total. */
const SHARE = 1 / 4
const LIMITED_MAX = 1_000

export interface CertificateLimits {
  /** Hosts of a workspace within 24 hours. */
  readonly certificatesPerDay: number
  /** Hosts of all workspaces within 24 hours. */
  readonly certificatesTotalPerDay: number
  /** Called when a workspace reaches one of the limits, with the name of the setting. */
  onCertificatesLimited(workspace: string, setting: CertificateSetting): void
}

type CertificateSetting = 'ADIT_EDGE_CERTIFICATES_PER_DAY' | 'ADIT_EDGE_CERTIFICATES_TOTAL_PER_DAY'

export class CertificateBudget {
  readonly #limits: CertificateLimits
  /** Workspace and time of each host, the latest last. */
  readonly #allowed = new Map<string, { workspace: string; at: number }>()
  readonly #byWorkspace = new KeyedCounter()
  /** Workspaces whose last new host was rejected. */
  readonly #limited = new BoundedMap<string, true>(LIMITED_MAX)

  constructor(limits: CertificateLimits) {
    this.#limits = limits
  }

  /** Counts a host that may have a certificate, or returns the setting that limits the workspace. */
  consume(workspace: string, host: string, now: number): CertificateSetting | undefined {
    for (const [oldest, { at }] of this.#allowed) {
      if (now - at < DAY_MS) break
      this.#delete(oldest)
    }
    const isNew = this.#allowed.get(host)?.workspace !== workspace
    const reached = isNew ? this.#limitReached(workspace) : undefined
    if (reached) {
      if (!this.#limited.has(workspace)) this.#limits.onCertificatesLimited(workspace, reached)
      this.#limited.set(workspace, true)
      return reached
    }
    if (isNew) this.#limited.delete(workspace)
    this.#delete(host)
    this.#allowed.set(host, { workspace, at: now })
    this.#byWorkspace.add(workspace, 1)
    return undefined
  }

  #limitReached(workspace: string): CertificateSetting | undefined {
    const { certificatesPerDay, certificatesTotalPerDay } = this.#limits
    const count = this.#byWorkspace.get(workspace)
    if (count >= certificatesPerDay) return 'ADIT_EDGE_CERTIFICATES_PER_DAY'
    const remaining = certificatesTotalPerDay - this.#allowed.size
    return count < remaining * SHARE ? undefined : 'ADIT_EDGE_CERTIFICATES_TOTAL_PER_DAY'
  }

  #delete(host: string): void {
    const allowed = this.#allowed.get(host)
    if (!allowed) return
    this.#allowed.delete(host)
    this.#byWorkspace.add(allowed.workspace, -1)
  }
}
