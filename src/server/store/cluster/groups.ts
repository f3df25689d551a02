// SQL of groups of edges.
import { isPostgres } from '../engine/bulk.ts'
import { insertUnlessExists } from '../engine/rows.ts'
import type { Db, Tx } from '../engine/store.ts'

/** Returns false if the group exists. */
export const insertGroup = (tx: Tx, name: string): Promise<boolean> =>
  insertUnlessExists(tx, 'edge_groups', { name }, ['name'])

export const hasGroup = async (db: Db, name: string): Promise<boolean> =>
  (await db.selectFrom('edge_groups').select('name').where('name', '=', name).executeTakeFirst()) !==
  undefined

/** With the number of active edges and of workspaces, by name. */
export const listGroups = (db: Db) =>
  db
    .selectFrom('edge_groups')
    .select(({ selectFrom, fn }) => [
      'edge_groups.name',
      selectFrom('edges')
        .select(fn.countAll().as('count'))
        .whereRef('edges.edge_group', '=', 'edge_groups.name')
        .where('edges.revoked_at', 'is', null)
        .as('edges'),
      selectFrom('workspaces')
        .select(fn.countAll().as('count'))
        .whereRef('workspaces.edge_group', '=', 'edge_groups.name')
        .as('workspaces'),
    ])
    .orderBy('edge_groups.name')
    .execute()

/**
 * Locks groups, in the order of their names. It is the last lock of a transaction that opens or closes
 * tunnels, except that of the change log.
 */
export async function lockGroups(tx: Tx, names: readonly string[]): Promise<void> {
  // A transaction on SQLite is the only writer.
  if (!isPostgres(tx)) return
  const query = tx.selectFrom('edge_groups').select('name').where('name', 'in', names).orderBy('name')
  await query.forNoKeyUpdate().execute()
}

export async function setWorkspaceGroup(tx: Tx, workspaceId: string, group: string): Promise<void> {
  await tx.updateTable('workspaces').set({ edge_group: group }).where('id', '=', workspaceId).execute()
}

/** Whether any tunnel of the workspace is stored, even one of an edge that is gone. */
export const hasStoredTunnels = async (db: Db, workspaceId: string): Promise<boolean> =>
  (await db
    .selectFrom('open_tunnels')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .limit(1)
    .executeTakeFirst()) !== undefined
