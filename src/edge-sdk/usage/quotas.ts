// Quotas of bytes and requests per month, as verification responses and the stream of changes have them.
import type { UsageQuota } from '../api.ts'

/** Interval of reports while a workspace is near its quota. */
const NEAR_INTERVAL_MS = 2_000
/** Interval of reports of workspaces that have used a notable share of their quota since the last one. */
const SHARE_INTERVAL_MS = 5_000
/** Timers are not exact. */
const TOLERANCE_MS = 100

/** Usage since the last report of a workspace. */
export interface Unreported {
  bytes: number
  requests: number
  /** Milliseconds since then. */
  sinceMs: number
}

/** By slug. Only workspaces with a quota are kept; beyond the maximum, the oldest is dropped. */
export class Quotas {
  readonly #known = new Map<string, UsageQuota>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  /** Whether it differs from what was known. An earlier revision is ignored: its node lags behind. */
  set(workspace: string, quota: UsageQuota): boolean {
    const known = this.#known.get(workspace)
    if (known && (known.revision > quota.revision || isSame(known, quota))) return false
    this.#known.delete(workspace)
    this.#known.set(workspace, quota)
    if (this.#known.size > this.#max) {
      const [oldest] = this.#known.keys()
      this.#known.delete(oldest as string)
    }
    return true
  }

  clear(): void {
    this.#known.clear()
  }

  /** The time until which new tunnels and traffic are rejected; undefined if they are not. */
  reachedUntil(workspace: string, now: number): number | undefined {
    if (this.#known.size === 0) return undefined
    const quota = this.#known.get(workspace)
    return quota?.level === 'reached' && now < untilOf(quota) ? untilOf(quota) : undefined
  }

  /** Whether usage has to be reported now. */
  isUrgent(workspace: string, { bytes, requests, sinceMs }: Unreported, now: number): boolean {
    const quota = this.#known.get(workspace)
    if (!quota || sinceMs < NEAR_INTERVAL_MS - TOLERANCE_MS) return false
    if (quota.level !== undefined && now < untilOf(quota)) return true
    const { reportBytes = Number.POSITIVE_INFINITY, reportRequests = Number.POSITIVE_INFINITY } = quota
    const isShare = bytes >= reportBytes || requests >= reportRequests
    return isShare && sinceMs >= SHARE_INTERVAL_MS - TOLERANCE_MS
  }
}

const untilOf = ({ until = '' }: UsageQuota): number => Date.parse(until)

const isSame = (a: UsageQuota, b: UsageQuota): boolean =>
  a.revision === b.revision &&
  a.level === b.level &&
  a.until === b.until &&
  a.reportBytes === b.reportBytes &&
  a.reportRequests === b.reportRequests
