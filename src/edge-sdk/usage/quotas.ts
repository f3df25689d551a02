// Monthly quotas of bytes and requests, from verification responses and the stream of changes.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import type { UsageQuota } from '../api.ts'

/** Interval of reports while a workspace is near its quota. */
const NEAR_INTERVAL_MS = 2_000
/** Interval of reports after a workspace has used a notable share of its quota. */
const SHARE_INTERVAL_MS = 5_000
/** Timers are not exact. */
const TOLERANCE_MS = 100

/** Usage of a workspace since its last report. */
export interface Unreported {
  bytes: number
  requests: number
  sinceMs: number
}

/** Quotas by workspace slug, for workspaces that have one. */
export class UsageQuotas {
  readonly #quotas: BoundedMap<string, UsageQuota>

  constructor(max: number) {
    this.#quotas = new BoundedMap(max)
  }

  /** Returns whether the quota has changed. An earlier revision is ignored: it is from a node that lags. */
  set(workspace: string, quota: UsageQuota): boolean {
    const current = this.#quotas.get(workspace)
    if (current && (current.revision > quota.revision || isSame(current, quota))) return false
    this.#quotas.set(workspace, quota)
    return true
  }

  clear(): void {
    this.#quotas.clear()
  }

  /** The time until which new tunnels and traffic are rejected; undefined below the quota. */
  reachedUntil(workspace: string, now: number): number | undefined {
    if (this.#quotas.size === 0) return undefined
    const quota = this.#quotas.get(workspace)
    return quota?.level === 'reached' && now < endTime(quota) ? endTime(quota) : undefined
  }

  /** Whether usage has to be reported now. */
  isUrgent(workspace: string, { bytes, requests, sinceMs }: Unreported, now: number): boolean {
    const quota = this.#quotas.get(workspace)
    if (!quota || sinceMs < NEAR_INTERVAL_MS - TOLERANCE_MS) return false
    if (quota.level !== undefined && now < endTime(quota)) return true
    const { reportBytes = Number.POSITIVE_INFINITY, reportRequests = Number.POSITIVE_INFINITY } = quota
    const isShare = bytes >= reportBytes || requests >= reportRequests
    return isShare && sinceMs >= SHARE_INTERVAL_MS - TOLERANCE_MS
  }
}

const endTime = ({ until = '' }: UsageQuota): number => Date.parse(until)

const isSame = (a: UsageQuota, b: UsageQuota): boolean =>
  a.revision === b.revision &&
  a.level === b.level &&
  a.until === b.until &&
  a.reportBytes === b.reportBytes &&
  a.reportRequests === b.reportRequests
