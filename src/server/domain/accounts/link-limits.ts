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
 * The lifetime of a link: at the limit the latest link is still valid, and no workspace has more of them
 * open.
 */
export const LINK_WINDOW_MS = DAY_MS

const PER_WORKSPACE = 100
const PER_INVITER = 50
const PER_WORKSPACE_AND_ADDRESS = 3
/** From all workspaces together: high enough that one or two of them cannot use it up. */
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
  const since = clock() - LINK_WINDOW_MS
  await lockUser(db, inviterId)
  await lockRecentLinksTo(db, email, since)
  const ofWorkspace = { workspace_id: workspaceId }
  for (const [of, most, reason] of [
    [ofWorkspace, PER_WORKSPACE, `This workspace has sent ${PER_WORKSPACE} invitations`],
    [{ creator_id: inviterId }, PER_INVITER, `You have sent ${PER_INVITER} invitations`],
    [
      { ...ofWorkspace, email },
      PER_WORKSPACE_AND_ADDRESS,
      `This workspace has sent ${email} ${PER_WORKSPACE_AND_ADDRESS} invitations`,
    ],
    // Without the number, because other workspaces may have invited the address.
    [{ email }, PER_ADDRESS, `${email} has been sent too many invitations`],
  ] as const) {
    const times = await recentLinkTimes(db, { purpose: 'join', of, since, most })
    if (times.length < most) continue
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
  const since = clock() - LINK_WINDOW_MS
  const limit = {
    purpose: 'reset',
    of: { email: user.email },
    since,
    most: RESETS_PER_ADDRESS,
  } as const
  return (await recentLinkTimes(db, limit)).length < RESETS_PER_ADDRESS
}
