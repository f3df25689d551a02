// Who gets emails about notices.

import { DAY_MS } from '../../../lib/time.ts'
import { listMembers } from '../../store/accounts/members.ts'
import type { Tx } from '../../store/engine/store.ts'
import { countDigests } from '../../store/notices/key-notices.ts'
import { lockWorkspace } from '../../store/workspaces.ts'
import { isAtLeast } from '../actors.ts'
import type { Services } from '../context.ts'

/** Beyond this, notices are only in the dashboard. */
const DIGESTS_PER_DAY = 10
const RECIPIENTS_MAX = 100

interface NoticeTarget {
  workspaceId: string
  kind: string
  /** A member who gets it instead of the owners and admins. */
  recipientId?: string
}

/**
 * Returns the ids of owners and admins, or none beyond the daily limit, for which the workspace is locked.
 * Requests of members have their own limit, so that they cannot use up that of other notices.
 */
export async function listRecipients(
  db: Tx,
  { clock }: Services,
  { workspaceId, kind, recipientId }: NoticeTarget,
): Promise<string[]> {
  if (recipientId !== undefined) return [recipientId]
  await lockWorkspace(db, workspaceId)
  const since = clock() - DAY_MS
  const digests = await countDigests(db, workspaceId, { since, areRequests: kind === 'key-request' })
  if (digests >= DIGESTS_PER_DAY) return []
  return (await listMembers(db, workspaceId))
    .filter(({ role, disabledAt }) => isAtLeast(role, 'admin') && disabledAt === null)
    .slice(0, RECIPIENTS_MAX)
    .map(({ id }) => id)
}
