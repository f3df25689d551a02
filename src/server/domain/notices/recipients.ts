// Who gets emails about notices.

import { DAY_MS } from '../../../lib/time.ts'
import { listMembers } from '../../store/accounts/members.ts'
import type { Tx } from '../../store/engine/store.ts'
import { countDigests } from '../../store/notices/key-notices.ts'
import { lockWorkspace } from '../../store/workspaces.ts'
import { isAtLeast } from '../actors.ts'
import type { Services } from '../context.ts'

/** Beyond this, notices are in the dashboard only. */
const DIGESTS_PER_DAY = 10
const RECIPIENTS_MAX = 100

/** Owners and admins; none if the workspace was sent enough today. Locks it, so that the limit holds. */
export async function listRecipients(db: Tx, { clock }: Services, workspaceId: string): Promise<string[]> {
  await lockWorkspace(db, workspaceId)
  if ((await countDigests(db, workspaceId, clock() - DAY_MS)) >= DIGESTS_PER_DAY) return []
  return (await listMembers(db, workspaceId))
    .filter(({ role, disabledAt }) => isAtLeast(role, 'admin') && disabledAt === null)
    .slice(0, RECIPIENTS_MAX)
    .map(({ id }) => id)
}
