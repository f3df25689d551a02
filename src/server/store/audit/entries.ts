// The audit log.
import type { Selectable } from 'kysely'
import type { Page } from '../engine/page.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

export type AuditRow = Selectable<Tables['audit_log']>

/** SQLite limits the parameters of a statement, and a user may belong to any number of workspaces. */
const ROWS_PER_STATEMENT = 500

export async function insertAudit(db: Tx, rows: AuditRow[]): Promise<void> {
  const [row, ...others] = rows
  if (row && others.length === 0) {
    await insertOne(db, row)
    return
  }
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT)
    await db
      .insertInto('audit_log')
      .values(rows.slice(start, start + ROWS_PER_STATEMENT))
      .execute()
}

const insertOne = statement((db: Tx, row: Placeholders<AuditRow>) =>
  db.insertInto('audit_log').values({
    id: row.id,
    workspace_id: row.workspace_id,
    at: row.at,
    actor_kind: row.actor_kind,
    actor_id: row.actor_id,
    action: row.action,
    target_id: row.target_id,
    actor_name: row.actor_name,
    target_name: row.target_name,
    address: row.address,
    detail: row.detail,
    count: row.count,
    changes: row.changes,
    position: row.position,
  }),
)

/**
 * Increments the count of an entry with the same workspace, action, subject and detail since `sinceId` that
 * was not exported. Returns false if there is none.
 */
export async function countRepetition(
  db: Tx,
  { workspace_id, action, target_id, detail }: AuditRow,
  sinceId: string,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('audit_log')
    .set((row) => ({ count: row(row.fn.coalesce('count', row.val(1)), '+', 1) }))
    .where('workspace_id', workspace_id === null ? 'is' : '=', workspace_id)
    .where('id', '>=', sinceId)
    .where('action', '=', action)
    .where('target_id', '=', target_id)
    .where('detail', '=', detail)
    // An exported entry does not change.
    .where('position', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

/**
 * The last entry since `sinceId` with the same workspace, actor, action, subject, address and detail that was
 * not exported.
 */
export const findRepeated = (db: Tx, row: AuditRow, sinceId: string): Promise<AuditRow | undefined> =>
  db
    .selectFrom('audit_log')
    .selectAll()
    .where('workspace_id', row.workspace_id === null ? 'is' : '=', row.workspace_id)
    .where('id', '>=', sinceId)
    .where('action', '=', row.action)
    .where('target_id', '=', row.target_id)
    .where('actor_kind', '=', row.actor_kind)
    .where('actor_id', '=', row.actor_id)
    .where('address', row.address === null ? 'is' : '=', row.address)
    .where('detail', row.detail === null ? 'is' : '=', row.detail)
    // An exported entry does not change.
    .where('position', 'is', null)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()

/** Returns false if the entry was exported or repeated by another transaction meanwhile. */
export async function updateRepeated(
  db: Tx,
  { id, count }: AuditRow,
  values: Pick<AuditRow, 'count' | 'changes'>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('audit_log')
    .set(values)
    .where('id', '=', id)
    .where('count', count === null ? 'is' : '=', count)
    .where('position', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

interface AuditPage extends Page {
  actorId?: string | undefined
  action?: string | undefined
  targetId?: string | undefined
  /** Ids from `fromId` on and before `beforeId`. */
  fromId?: string | undefined
  beforeId?: string | undefined
}

/** Joins the labels of keys, which are never deleted; other names are stored in the entry. */
export const selectEntries = (db: Db) =>
  db
    .selectFrom('audit_log')
    .leftJoin('api_keys as actor_key', 'actor_key.id', 'audit_log.actor_id')
    .leftJoin('api_keys as target_key', 'target_key.id', 'audit_log.target_id')
    .selectAll('audit_log')
    .select(['actor_key.label as actor_label', 'target_key.label as target_label'])

/**
 * Newest first. Filters by only one of actor, action and target, so that an index has the entries in this
 * order; the caller filters by the others.
 */
export function listAudit(db: Db, workspaceId: string, page: AuditPage) {
  const { after, limit, actorId, action, targetId, fromId, beforeId } = page
  let query = selectEntries(db)
    .where('audit_log.workspace_id', '=', workspaceId)
    .orderBy('audit_log.id', 'desc')
    .limit(limit)
  if (after !== undefined) query = query.where('audit_log.id', '<', after)
  if (beforeId !== undefined) query = query.where('audit_log.id', '<', beforeId)
  if (fromId !== undefined) query = query.where('audit_log.id', '>=', fromId)
  if (targetId !== undefined) query = query.where('audit_log.target_id', '=', targetId)
  else if (actorId !== undefined) query = query.where('audit_log.actor_id', '=', actorId)
  else if (action !== undefined) query = query.where('audit_log.action', '=', action)
  return query.execute()
}
