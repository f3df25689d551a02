// Limits on invitation and reset links per 24 hours, because each may send a mail. Counted from the stored
// links in the transaction that adds one, so they hold across nodes and restarts.

import { DAY_MS } from '../../../lib/time.ts'
import { lockRecentLinksTo, recentLinkTimes } from '../../store/accounts/links.ts'
import { lockUser } from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import type { Services } from '../context.ts'
import { formatDuration } from '../duration.ts'
import { Fault } from '../fault.ts'

/**
 * Lifetime of a link, and window of the limits. They are equal, so that at a limit the latest link is still
 * valid, and a workspace never has more open links than the limit.
 */
export const LINK_MS = DAY_MS

const PER_WORKSPACE = 100
const PER_INVITER = 50
const PER_WORKSPACE_AND_ADDRESS = 3
/** The limit of all workspaces together is so high that one or two of them cannot use it up. */
const PER_ADDRESS = 20
const RESETS_PER_ADDRESS = 5

/**
 * Throws `rate_limited` if another invitation would exceed a limit. The caller has locked the workspace;
 * inviter and address are locked here, to serialize concurrent invitations. (The first invitations to an
 * address have no row to lock: at most one per workspace.)
 */
export async function requireInvitationAllowed(
  db: Tx,
  { clock }: Services,
  { workspaceId, inviterId, email }: { workspaceId: string; inviterId: string; email: string },
): Promise<void> {
  const since = clock() - LINK_MS
  await lockUser(db, inviterId)
  await lockRecentLinksTo(db, email, since)
  const workspace = { workspace_id: workspaceId }
  for (const [matching, max, reason] of [
    [workspace, PER_WORKSPACE, `This workspace has sent ${PER_WORKSPACE} invitations`],
    [{ creator_id: inviterId }, PER_INVITER, `You have sent ${PER_INVITER} invitations`],
    [
      { ...workspace, email },
      PER_WORKSPACE_AND_ADDRESS,
      `This workspace has sent ${email} ${PER_WORKSPACE_AND_ADDRESS} invitations`,
    ],
    // Without the number, because other workspaces may have invited the address.
    [{ email }, PER_ADDRESS, `${email} has been sent too many invitations`],
  ] as const) {
    const times = await recentLinkTimes(db, { purpose: 'join', matching, since, max })
    if (times.length < max) continue
    const retryAfterS = Math.max(1, Math.ceil((Math.min(...times) - since) / 1000))
    throw new Fault('rate_limited', {
      message: `${reason} in 24 hours. Try again in ${formatDuration(retryAfterS)}.`,
      retryAfterS,
    })
  }
}

/** Whether another password reset link may be sent. At the limit, the latest one is still valid. */
export async function isResetAllowed(
  db: Tx,
  { clock }: Services,
  user: { id: string; email: string },
): Promise<boolean> {
  await lockUser(db, user.id)
  const since = clock() - LINK_MS
  const matching = { email: user.email }
  const times = await recentLinkTimes(db, { purpose: 'reset', matching, since, max: RESETS_PER_ADDRESS })
  return times.length < RESETS_PER_ADDRESS
}
