// Workspace memberships and roles.
import type { Selectable } from 'kysely'
import { isPostgres } from '../engine/bulk.ts'
import { insertUnlessExists } from '../engine/rows.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { policyColumns } from '../workspaces.ts'

export type Role = Tables['members']['role']

/** Reads and locks the role; an update without change locks the row on both engines. */
export async function lockRole(db: Tx, workspaceId: string, userId: string): Promise<Role | undefined> {
  const row = await db
    .updateTable('members')
    .set((member) => ({ role: member.ref('role') }))
    .where('workspace_id', '=', workspaceId)
    .where('user_id', '=', userId)
    .returning('role')
    .executeTakeFirst()
  return row?.role
}

/**
 * The role of a user who acts without a session, such as the owner of a personal key. Undefined if the user
 * is disabled or not a member. The lock is shared: until the transaction ends, others can read the role, but
 * cannot change it, or remove or disable the user.
 */
export const shareRole = async (db: Tx, workspaceId: string, userId: string): Promise<Role | undefined> =>
  (await selectShared(db, { workspaceId, userId }))[0]?.role

const selectShared = statement((db: Tx, { workspaceId, userId }: Placeholders<MemberName>) => {
  const query = db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select('members.role')
    .where('members.workspace_id', '=', workspaceId)
    .where('members.user_id', '=', userId)
    .where('users.disabled_at', 'is', null)
  // On SQLite a transaction is the only writer.
  return isPostgres(db) ? query.forShare() : query
})

/** Until the transaction ends, no member's two-factor authentication or password can be turned on or off. */
export async function shareMembers(db: Tx, workspaceId: string): Promise<void> {
  if (!isPostgres(db)) return
  const query = db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select('users.id')
    .where('members.workspace_id', '=', workspaceId)
    .orderBy('users.id')
  await query.forShare().execute()
}

interface MemberName {
  workspaceId: string
  userId: string
}

/** The membership of a user, by the workspace's slug. */
export const findMembership = (db: Db, slug: string, userId: string) =>
  db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select([
      'workspaces.id as workspaceId',
      'workspaces.two_factor_required_at',
      'workspaces.archived_at',
      'members.role',
    ])
    .where('workspaces.slug', '=', slug)
    .where('members.user_id', '=', userId)
    .executeTakeFirst()

export const listMemberships = (db: Db, userId: string) =>
  db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['workspaces.slug', 'workspaces.name', 'workspaces.archived_at', 'members.role'])
    .select(policyColumns)
    .where('members.user_id', '=', userId)
    .orderBy('workspaces.name')
    .execute()

export async function listMemberWorkspaceIds(db: Db, userId: string): Promise<string[]> {
  const rows = await db.selectFrom('members').select('workspace_id').where('user_id', '=', userId).execute()
  return rows.map((row) => row.workspace_id)
}

export const listMembers = (db: Db, workspaceId: string) =>
  db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select([
      'users.id',
      'users.name',
      'users.email',
      'users.disabled_at as disabledAt',
      'members.role',
      'members.created_at as joinedAt',
    ])
    .where('members.workspace_id', '=', workspaceId)
    .orderBy('users.name')
    .orderBy('users.id')
    .execute()

/** Returns false if the user is a member already. */
export const insertMember = (db: Tx, row: Selectable<Tables['members']>): Promise<boolean> =>
  insertUnlessExists(db, 'members', row, ['workspace_id', 'user_id'])

export async function setRole(db: Tx, workspaceId: string, userId: string, role: Role): Promise<void> {
  await db
    .updateTable('members')
    .set({ role })
    .where('workspace_id', '=', workspaceId)
    .where('user_id', '=', userId)
    .execute()
}

export async function deleteMember(db: Tx, workspaceId: string, userId: string): Promise<void> {
  await db
    .deleteFrom('members')
    .where('workspace_id', '=', workspaceId)
    .where('user_id', '=', userId)
    .execute()
}

/** Locks all members, so that two owners cannot both leave at the same time. */
export async function lockMembers(db: Tx, workspaceId: string): Promise<void> {
  await db
    .updateTable('members')
    .set((row) => ({ role: row.ref('role') }))
    .where('workspace_id', '=', workspaceId)
    .execute()
}

export const listMembershipsAmong = (db: Db, userIds: readonly string[]) =>
  db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['members.user_id', 'workspaces.slug', 'members.role'])
    .where('members.user_id', 'in', userIds)
    .orderBy('workspaces.slug')
    .execute()
