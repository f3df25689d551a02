import type { Selectable } from 'kysely'
import type { Db } from './store.ts'
import type { Tables } from './tables.ts'

export type AuditRow = Selectable<Tables['audit_log']>

export async function insertAudit(db: Db, row: AuditRow): Promise<void> {
  await db.insertInto('audit_log').values(row).execute()
}
