// Personal keys and requests for keys end with the membership or the account of their user, in the same
// transaction. Personal keys also end when a workspace requires two-factor authentication and their user has
// none: the user may then do nothing in it.
import { revokeKeysWithoutTwoFactor as revokeRowsWithoutTwoFactor } from '../../store/accounts/two-factors.ts'
import type { Tx } from '../../store/engine/store.ts'
import { endRequests } from '../../store/keys/requests.ts'
import { revokePersonalKeys as revokeRows } from '../../store/keys/rows.ts'
import { type KeyChange, type PublishedChange, publishChanges } from '../../verification/propagation.ts'
import { writeAuditEntries } from '../audit/entries.ts'
import type { Caller, Services } from '../context.ts'
import { recordRevoked } from './lifecycle.ts'

/**
 * Revokes the personal keys of a user and ends their open requests, in one workspace or in all of them. The
 * caller has locked what new keys of the user need, and publishes the changes. Their number is limited: see
 * `PERSONAL_KEYS_MAX`.
 */
export async function revokePersonalKeys(
  db: Tx,
  services: Services,
  actor: Caller,
  user: { userId: string; workspaceId?: string },
): Promise<KeyChange[]> {
  const requests = await endRequests(db, user)
  await writeAuditEntries(
    db,
    services,
    requests.map(({ id, workspace_id, label }) => ({
      actor,
      detail: 'user-ended' as const,
      workspaceId: workspace_id,
      action: 'key.request-withdrawn' as const,
      target: { id, name: label },
    })),
  )
  return recordRevoked(db, services, actor, await revokeRows(db, user, services.clock()), 'user-ended')
}

/**
 * Revokes the personal keys of a user, or of all users of a workspace, who lack the two-factor authentication
 * that a workspace requires. The caller has locked these users. Call it last in the transaction, and await
 * the change once that is committed.
 */
export async function revokeKeysWithoutTwoFactor(
  db: Tx,
  services: Services,
  actor: Caller,
  scope: { userId: string } | { workspaceId: string },
): Promise<PublishedChange | undefined> {
  const keys = await revokeRowsWithoutTwoFactor(db, scope, services.clock())
  return publishChanges(db, services, await recordRevoked(db, services, actor, keys, 'two-factor-missing'))
}
