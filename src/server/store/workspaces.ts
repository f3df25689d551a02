// SQL of workspaces.
import type { Selectable } from 'kysely'
import { isOneOf, isPostgres, listParameter } from './engine/bulk.ts'
import type { Page } from './engine/page.ts'
import { countRows, insertUnlessExists } from './engine/rows.ts'
import { type Placeholders, statement } from './engine/statement.ts'
import type { Db, Tx } from './engine/store.ts'
import type { Tables } from './engine/tables.ts'

export type WorkspaceRow = Selectable<Tables['workspaces']>

/** Returns false if the slug is in use. */
export const insertWorkspace = (db: Tx, row: WorkspaceRow): Promise<boolean> =>
  insertUnlessExists(db, 'workspaces', row, ['slug'])

export const getWorkspace = (db: Db, id: string): Promise<WorkspaceRow> =>
  db.selectFrom('workspaces').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

/** Omits ids that do not exist. */
export const findWorkspaces = (db: Db, ids: readonly string[]): Promise<WorkspaceRow[]> =>
  db
    .selectFrom('workspaces')
    .selectAll()
    .where(isOneOf(db, 'id', listParameter(db, ids)))
    .execute()

export const findWorkspaceBySlug = (db: Db, slug: string): Promise<WorkspaceRow | undefined> =>
  db.selectFrom('workspaces').selectAll().where('slug', '=', slug).executeTakeFirst()

export const policyColumns = [
  'key_days_max',
  'keys_read_only_at',
  'key_creator_role',
  'two_factor_required_at',
] as const

export type PolicyColumns = Pick<WorkspaceRow, (typeof policyColumns)[number]>

export const quotaColumns = [
  'quota_bytes',
  'quota_requests',
  'quota_tunnels',
  'quota_keys',
  'usage_level',
  'usage_level_until',
  'quota_revision',
] as const

/** The columns that decide what members and API keys may do. */
const authorizingColumns = ['id', 'slug', 'name', 'archived_at', ...policyColumns, ...quotaColumns] as const

export type WorkspaceRules = Pick<WorkspaceRow, (typeof authorizingColumns)[number]>

export const lockWorkspace = async (db: Tx, id: string): Promise<WorkspaceRules> =>
  requireRow(await updateNothing(db, { id }), id)

/** Locks several workspaces in the order of their ids. */
export async function lockWorkspaces(db: Tx, ids: readonly string[]): Promise<void> {
  // A transaction on SQLite is the only writer.
  if (!isPostgres(db)) return
  const query = db.selectFrom('workspaces').select('id').where('id', 'in', ids).orderBy('id')
  await query.forNoKeyUpdate().execute()
}

export const readWorkspaceRules = async (db: Tx, id: string): Promise<WorkspaceRules> =>
  requireRow(await selectRules(db, { id }), id)

function requireRow([row]: WorkspaceRules[], id: string): WorkspaceRules {
  if (!row) throw new Error(`there is no workspace ${id}`)
  return row
}

const selectRules = statement((db: Tx, { id }: Placeholders<{ id: string }>) =>
  db.selectFrom('workspaces').select(authorizingColumns).where('id', '=', id),
)

/** An update without change locks the row on both engines. */
const updateNothing = statement((db: Tx, { id }: Placeholders<{ id: string }>) =>
  db
    .updateTable('workspaces')
    .set((row) => ({ name: row.ref('name') }))
    .where('id', '=', id)
    .returning(authorizingColumns),
)

/** Sorted by slug. */
export function listWorkspaces(db: Db, { after, limit }: Page): Promise<WorkspaceRow[]> {
  const query = db.selectFrom('workspaces').selectAll().orderBy('slug').limit(limit)
  return (after === undefined ? query : query.where('slug', '>', after)).execute()
}

export async function hasWorkspaces(db: Db): Promise<boolean> {
  return (await db.selectFrom('workspaces').select('id').limit(1).executeTakeFirst()) !== undefined
}

export const countWorkspacesCreatedBy = (db: Db, userId: string): Promise<number> =>
  countRows(db.selectFrom('workspaces').where('creator_id', '=', userId))

/** Returns false if it was provisioned already. */
export async function provisionWorkspace(db: Tx, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('workspaces')
    .set({ provisioned_at: at })
    .where('id', '=', id)
    .where('provisioned_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export async function renameWorkspace(db: Tx, id: string, name: string): Promise<void> {
  await db.updateTable('workspaces').set({ name }).where('id', '=', id).execute()
}

export async function setPolicy(db: Tx, id: string, policy: PolicyColumns): Promise<void> {
  await db.updateTable('workspaces').set(policy).where('id', '=', id).execute()
}

export async function setArchived(db: Tx, id: string, at: number | null): Promise<void> {
  await db.updateTable('workspaces').set({ archived_at: at }).where('id', '=', id).execute()
}
