import type { Selectable } from 'kysely'
import type { Page } from './keys.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type AuditRow = Selectable<Tables['audit_log']>

export async function insertAudit(db: Tx, row: AuditRow): Promise<void> {
  await db.insertInto('audit_log').values(row).execute()
}

/** Newest first. Keys are never deleted, so their labels are looked up; everybody else's name was written down. */
export function listAudit(db: Db, workspaceId: string, { after, limit }: Page) {
  let query = db
    .selectFrom('audit_log')
    .leftJoin('api_keys as actor_key', 'actor_key.id', 'audit_log.actor_id')
    .leftJoin('api_keys as subject_key', 'subject_key.id', 'audit_log.subject_id')
    .selectAll('audit_log')
    .select(['actor_key.label as actor_label', 'subject_key.label as subject_label'])
    .where('audit_log.workspace_id', '=', workspaceId)
    .orderBy('audit_log.id', 'desc')
    .limit(limit)
  if (after !== undefined) query = query.where('audit_log.id', '<', after)
  return query.execute()
}
