import type { Selectable } from 'kysely'
import type { Db } from './store.ts'
import type { Tables } from './tables.ts'

const SLUGS_PER_STATEMENT = 1_000

export type WorkspaceRow = Selectable<Tables['workspaces']>

/** False where the slug is taken. */
export async function insertWorkspace(db: Db, row: WorkspaceRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('workspaces')
    .values(row)
    .onConflict((conflict) => conflict.column('slug').doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export const getWorkspace = (db: Db, id: string): Promise<WorkspaceRow> =>
  db.selectFrom('workspaces').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

export const findWorkspaceBySlug = (db: Db, slug: string): Promise<WorkspaceRow | undefined> =>
  db.selectFrom('workspaces').selectAll().where('slug', '=', slug).executeTakeFirst()

/** Those of the slugs that exist, however many are asked for. */
export async function findWorkspacesBySlugs(db: Db, slugs: readonly string[]): Promise<WorkspaceRow[]> {
  const found: WorkspaceRow[] = []
  for (let start = 0; start < slugs.length; start += SLUGS_PER_STATEMENT) {
    const part = slugs.slice(start, start + SLUGS_PER_STATEMENT)
    found.push(...(await db.selectFrom('workspaces').selectAll().where('slug', 'in', part).execute()))
  }
  return found
}

export const listWorkspaces = (db: Db): Promise<WorkspaceRow[]> =>
  db.selectFrom('workspaces').selectAll().orderBy('slug').execute()

export async function hasWorkspaces(db: Db): Promise<boolean> {
  return (await db.selectFrom('workspaces').select('id').limit(1).executeTakeFirst()) !== undefined
}

/** False where there was nothing to change: provisioned already. */
export async function provisionWorkspace(db: Db, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('workspaces')
    .set({ provisioned_at: at })
    .where('id', '=', id)
    .where('provisioned_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}
