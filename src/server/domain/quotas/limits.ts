// Quotas of a workspace: bytes and requests per UTC calendar month, open tunnels and active API keys. The
// operator sets defaults in the configuration, and quotas of single workspaces with a command.
import type { UsageQuota } from '../../../contract/edge/quotas.ts'
import { startOfMonth } from '../../../lib/time.ts'
import type { WorkspaceRow } from '../../store/workspaces.ts'
import type { Quotas } from '../context.ts'
import { toIso } from '../timestamps.ts'

export const quotaKinds = ['bytes', 'requests', 'tunnels', 'keys'] as const
export type QuotaKind = (typeof quotaKinds)[number]

export const quotaTitles: Record<QuotaKind, string> = {
  bytes: 'bytes per month',
  requests: 'requests per month',
  tunnels: 'open tunnels',
  keys: 'active API keys',
}

/** A quota of a UTC calendar month; the others limit what exists at the same time. */
export const isMonthly = (kind: QuotaKind): boolean => kind === 'bytes' || kind === 'requests'

/** The columns of a workspace without quotas of its own. */
export const NO_QUOTA_OVERRIDES = {
  quota_bytes: null,
  quota_requests: null,
  quota_tunnels: null,
  quota_keys: null,
  usage_level: null,
  usage_level_until: null,
  quota_revision: 0,
} as const satisfies Partial<WorkspaceRow>

/** The column value of a workspace without a limit although there is a default. */
export const UNLIMITED = -1

type QuotaColumns = Pick<WorkspaceRow, `quota_${QuotaKind}`>

/** Null if there is no limit. */
export const effectiveLimit = (column: number | null, fallback: number | null): number | null =>
  column === UNLIMITED ? null : (column ?? fallback)

export function effectiveQuotas(defaults: Quotas, row: QuotaColumns): Quotas {
  return {
    bytes: effectiveLimit(row.quota_bytes, defaults.bytes),
    requests: effectiveLimit(row.quota_requests, defaults.requests),
    tunnels: effectiveLimit(row.quota_tunnels, defaults.tunnels),
    keys: row.quota_keys ?? defaults.keys,
  }
}

/** From this percentage of a quota on, owners are notified and edges report more often. */
export const NEAR_PERCENT = 80

/** Usage of a workspace in a month. */
interface MonthUsage {
  bytes: bigint
  requests: bigint
}

/** The highest threshold in percent that is reached; 0 if none is. */
export function reachedThreshold(used: bigint | number, limit: number | null): 0 | 80 | 100 {
  if (limit === null) return 0
  if (BigInt(used) >= BigInt(limit)) return 100
  return BigInt(used) * 100n >= BigInt(limit) * BigInt(NEAR_PERCENT) ? NEAR_PERCENT : 0
}

/** The level of the month's usage: null below 80 % of both quotas. */
export function usageLevel(usage: MonthUsage, quotas: Quotas): WorkspaceRow['usage_level'] {
  const highest = Math.max(
    reachedThreshold(usage.bytes, quotas.bytes),
    reachedThreshold(usage.requests, quotas.requests),
  )
  if (highest === 0) return null
  return highest === 100 ? 'reached' : 'near'
}

export const hasUsageQuota = ({ bytes, requests }: Quotas): boolean => bytes !== null || requests !== null

/** Whether new tunnels and traffic are rejected. */
export const isReached = (level: string | null | undefined, until: number, now: number): boolean =>
  level === 'reached' && now < until

export const QUOTA_REACHED =
  'The workspace has used up its quota of bytes or requests for this month. It renews on the first day of ' +
  'the next month (UTC); the operator can raise it.'

export const isQuotaReached = (quota: UsageQuota | undefined, now: number): boolean =>
  isReached(quota?.level, Date.parse(quota?.until ?? ''), now)

/** The start of the month of a time, and of the next month. */
export const monthRange = (now: number) => ({ from: startOfMonth(now), until: startOfMonth(now, 1) })

/**
 * An edge that has carried 1/200 of a quota since its last report reports within 5 seconds, however long the
 * server asked it to wait. So 40 edges together have at most a fifth of the quota unreported, apart from the
 * traffic of 5 seconds.
 */
const REPORT_SHARE = 200

/** The quota as edges get it; undefined if the traffic of the workspace is not limited. */
export function describeForEdges(defaults: Quotas, row: WorkspaceRow): UsageQuota | undefined {
  const quotas = effectiveQuotas(defaults, row)
  if (!hasUsageQuota(quotas)) return row.quota_revision === 0 ? undefined : { revision: row.quota_revision }
  const { usage_level, usage_level_until } = row
  const reportShare = (limit: number) => Math.max(1, Math.floor(limit / REPORT_SHARE))
  return {
    revision: row.quota_revision,
    ...(usage_level !== null &&
      usage_level_until !== null && { level: usage_level, until: toIso(usage_level_until) }),
    ...(quotas.bytes !== null && { reportBytes: reportShare(quotas.bytes) }),
    ...(quotas.requests !== null && { reportRequests: reportShare(quotas.requests) }),
  }
}
