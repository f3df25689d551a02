// Personal keys end with the membership or the account of their user, in the same transaction.
import type { Tx } from '../../store/engine/store.ts'
import { revokePersonalKeys as revokeRows } from '../../store/keys/rows.ts'
import type { KeyChange } from '../../verification/propagation.ts'
import { writeAuditEntries } from '../audit/entries.ts'
import type { Caller, Services } from '../context.ts'
import { eventActor, recordEvents } from '../events/record.ts'
import { keyInEvent } from './lifecycle.ts'

/**
 * Revokes the personal keys of a user, in one workspace or in all of them. The caller has locked what new
 * keys of the user need, and publishes the changes. Their number is limited: see `PERSONAL_KEYS_MAX`.
 */
export async function revokePersonalKeys(
  db: Tx,
  services: Services,
  actor: Caller,
  user: { userId: string; workspaceId?: string },
): Promise<KeyChange[]> {
  const keys = await revokeRows(db, user, services.clock())
  await writeAuditEntries(
    db,
    services,
    keys.map(({ id, workspace_id }) => ({
      workspaceId: workspace_id,
      actor,
      action: 'key.revoked',
      target: { id },
      detail: 'user-ended',
    })),
  )
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
