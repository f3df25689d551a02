// Alerts at 80 % and 100 % of a quota, once for each limit and month.
import type { Tx } from '../../store/engine/store.ts'
import type { Services } from '../context.ts'
import { type Alert, createAlerts } from '../notices/alerts.ts'
import { toIso } from '../timestamps.ts'
import { isMonthly, monthRange, type QuotaKind, quotaTitles, reachedThreshold } from './limits.ts'

const effects: Record<QuotaKind, string> = {
  bytes: 'Edges reject its traffic and new tunnels with 429.',
  requests: 'Edges reject its traffic and new tunnels with 429.',
  tunnels: 'New tunnels are rejected until others close.',
  keys: 'No new keys can be created until others are revoked.',
}

export interface QuotaUse {
  workspaceId: string
  kind: QuotaKind
  used: bigint | number
  limit: number | null
}

/** The caller has locked the workspaces. */
export const alertQuotas = (db: Tx, services: Services, uses: readonly QuotaUse[]): Promise<void> =>
  createAlerts(
    db,
    services,
    uses.flatMap((use) => describeAlert(use, services.clock()) ?? []),
  )

/** Undefined below all thresholds. */
function describeAlert({ workspaceId, kind, used, limit }: QuotaUse, now: number): Alert | undefined {
  const percent = reachedThreshold(used, limit)
  if (percent === 0 || limit === null) return undefined
  const { from, until } = monthRange(now)
  const month = toIso(from).slice(0, 7)
  const renewsAt = isMonthly(kind) ? toIso(until) : null
  const quota = `its quota of ${limit.toLocaleString('en-US')} ${quotaTitles[kind]}`
  const renewal = renewsAt === null ? '' : ` It renews on ${renewsAt.slice(0, 10)} at 00:00 UTC.`
  return {
    kind: 'quota',
    workspaceId,
    subjectId: workspaceId,
    dedupKey: `${month} ${kind} ${percent} ${limit}`,
    title: percent === 100 ? 'has reached a quota' : 'has used 80 % of a quota',
    text:
      percent === 100
        ? `It has reached ${quota}. ${effects[kind]}${renewal} The operator can raise it.`
        : `It has used 80 % of ${quota}.${renewal}`,
    event: {
      workspaceId,
      type: percent === 100 ? 'quota.reached' : 'quota.near',
      data: { quota: kind, limit, renewsAt },
    },
  }
}
