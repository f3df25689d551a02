// Export positions of audit log entries. Ids and times are assigned before the commit, so an entry may
// become visible after a later one was exported. The export assigns positions to committed entries while it
// locks one row, so whatever becomes visible later gets a higher position.
import { sql } from 'kysely'
import { deleteBulk, executeBulk, isPostgres } from '../engine/bulk.ts'
import type { Db, Tx } from '../engine/store.ts'
import { type AuditRow, selectEntries } from './entries.ts'

export interface ExportState {
  /** The last position assigned. */
  exportPosition: number
  /** The last position of an entry that retention has deleted. */
  deletedExportPosition: number
}

/** Locks the state with an update without change, which both engines have. */
export async function lockExport(db: Tx): Promise<ExportState> {
  const row = await db
    .updateTable('audit_export')
    .set((state) => ({ position: state.ref('position') }))
    .where('id', '=', 1)
    .returning(['position', 'deleted_position'])
    .executeTakeFirstOrThrow()
  return { exportPosition: row.position, deletedExportPosition: row.deleted_position }
}

export async function setExport(db: Tx, state: ExportState): Promise<void> {
  await db
    .updateTable('audit_export')
    .set({ position: state.exportPosition, deleted_position: state.deletedExportPosition })
    .where('id', '=', 1)
    .execute()
}

/**
 * Assigns positions from `position` + 1 on to at most `size` entries without one whose ids come after
 * `afterId`. Returns the ids in their order. PostgreSQL keeps the earlier versions of exported entries in the
 * index, so a search that began with the first id each time would read all of them for each batch.
 */
export async function assignExportPositions(
  db: Tx,
  { position, afterId, size }: { position: number; afterId: string; size: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('audit_log')
    .select('id')
    .where('position', 'is', null)
    .where('id', '>', afterId)
    .orderBy('id')
    .limit(size)
    .execute()
  // Otherwise the planner reads a table of some 10,000 entries once for each batch to join it.
  if (isPostgres(db))
    await sql`select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
      set_config('enable_seqscan', 'off', true)`.execute(db)
  if (rows.length > 0)
    await executeBulk(
      db,
      { id: 'text', position: 'bigint' },
      rows.map(({ id }, index) => [id, position + 1 + index]),
      'update audit_log set position = input.position from input where audit_log.id = input.id',
    )
  return rows.map(({ id }) => id)
}

/** Entries in the order of export positions, with the slug of the workspace. */
export const listExported = (db: Db, { after, through }: { after: number; through: number }, limit: number) =>
  selectEntries(db)
    .leftJoin('workspaces', 'workspaces.id', 'audit_log.workspace_id')
    .select('workspaces.slug')
    .where('position', '>', after)
    .where('position', '<=', through)
    .orderBy('position')
    .limit(limit)
    .execute()

/** Whether an entry with another action follows the export position, or has none yet. */
export async function hasEntriesAfter(db: Db, after: number, exceptAction: string): Promise<boolean> {
  const others = db.selectFrom('audit_log').select('id').where('action', '!=', exceptAction).limit(1)
  const found =
    (await others.where('position', 'is', null).executeTakeFirst()) ??
    (await others.where('position', '>', after).executeTakeFirst())
  return found !== undefined
}

/** Deletes the oldest entries before an id, at most `size`. Returns their export positions. */
export async function deleteEntriesBefore(db: Tx, id: string, size: number): Promise<AuditRow['position'][]> {
  const rows = await db
    .selectFrom('audit_log')
    .select(['id', 'position'])
    .where('id', '<', id)
    .orderBy('id')
    .limit(size)
    .execute()
  if (rows.length > 0)
    await deleteBulk(
      { db, isDistributed: false },
      'audit_log',
      { id: 'text' },
      rows.map((row) => [row.id]),
    )
  return rows.map(({ position }) => position)
}
