// Personal keys and requests for keys end with the membership or the account of their user, in the same
// transaction.
import type { Tx } from '../../store/engine/store.ts'
import { endRequests } from '../../store/keys/requests.ts'
import { revokePersonalKeys as revokeRows } from '../../store/keys/rows.ts'
import type { KeyChange } from '../../verification/propagation.ts'
import { writeAuditEntries } from '../audit/entries.ts'
import type { Caller, Services } from '../context.ts'
import { eventActor, recordEvents } from '../events/record.ts'
import { keyInEvent } from './lifecycle.ts'

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
  const keys = await revokeRows(db, user, services.clock())
  const requests = await endRequests(db, user)
  const ended = { actor, detail: 'user-ended' } as const
  await writeAuditEntries(db, services, [
    ...keys.map(({ id, workspace_id }) => ({
      ...ended,
      workspaceId: workspace_id,
      action: 'key.revoked' as const,
      target: { id },
    })),
    ...requests.map(({ id, workspace_id, label }) => ({
      ...ended,
      workspaceId: workspace_id,
      action: 'key.request-withdrawn' as const,
      target: { id, name: label },
    })),
  ])
  await recordEvents(
    db,
    services,
    keys.map((key) => ({
      workspaceId: key.workspace_id,
      type: 'key.revoked',
      data: { key: keyInEvent(key), actor: eventActor(actor) },
    })),
  )
  return keys.map(({ id, hash }) => ({ kind: 'key', subjectId: id, hash }))
}
