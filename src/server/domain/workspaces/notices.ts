// The notices of a workspace in the dashboard.

import { DAY_MS } from '../../../lib/time.ts'
import { listPendingRequests } from '../../store/keys/requests.ts'
import { listNoticedKeys, listRejected, listSilent } from '../../store/notices/key-notices.ts'
import { listDisabledByServer } from '../../store/webhooks/endpoints.ts'
import type { Context } from '../context.ts'
import { isMonthly, reachedThreshold } from '../quotas/limits.ts'
import { toIso } from '../timestamps.ts'
import { redactUrl } from '../webhooks/url.ts'
import { readQuotas } from './quotas.ts'

const LISTED_MAX = 100
/** Such a notice never becomes obsolete, so it is shown for a limited time. */
const REJECTED_SHOWN_MS = 7 * DAY_MS

export async function listNotices(ctx: Context) {
  const { store, workspaceId, clock } = ctx
  const expiring = await listNoticedKeys(store.db, workspaceId, LISTED_MAX)
  const rejected = await listRejected(store.db, workspaceId, clock() - REJECTED_SHOWN_MS, LISTED_MAX)
  const silent = await listSilent(store.db, workspaceId, LISTED_MAX)
  const webhooks = await listDisabledByServer(store.db, workspaceId)
  const requests = await listPendingRequests(store.db, workspaceId, clock(), LISTED_MAX)
  const { quotas, renewsAt } = await readQuotas(ctx)
  const used = quotas.flatMap(({ kind, used, limit }) => {
    const percent = reachedThreshold(used, limit)
    return percent === 0 || limit === null
      ? []
      : { kind, percent, limit, renewsAt: isMonthly(kind) ? renewsAt : null }
  })
  return {
    notices: [
      ...requests.map(({ id, name, label }) => ({
        kind: 'key-request' as const,
        request: { id, userName: name, label },
      })),
      ...used.map((quota) => ({ kind: 'quota' as const, quota })),
      ...silent.map(({ id, name, lastSyncAt }) => ({
        kind: 'edge-silent' as const,
        edge: { id, name, lastSyncAt: toIso(lastSyncAt) },
      })),
      ...webhooks.map(({ id, url, disabledAt }) => ({
        kind: 'webhook-disabled' as const,
        webhook: { id, url: redactUrl(url), disabledAt: toIso(disabledAt) },
      })),
      ...rejected.map((key) => ({ kind: 'key-rejected' as const, key: { ...key, expiresAt: null } })),
      ...expiring.map(({ expiresAt, ...key }) => ({
        kind: 'key-expiry' as const,
        key: { ...key, expiresAt: toIso(expiresAt) },
      })),
    ].slice(0, LISTED_MAX),
  }
}
