// People, and what they are in which workspace.
import type { Selectable } from 'kysely'
import type { Page } from './keys.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type UserRow = Selectable<Tables['users']>
export type Role = Tables['members']['role']

/** False where the address has an account already. */
export async function insertUser(db: Tx, row: UserRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('users')
    .values(row)
    .onConflict((conflict) => conflict.column('email').doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

export const findUser = (db: Db, id: string): Promise<UserRow | undefined> =>
  db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()

/** Until the transaction ends, nobody else locks the user. (Written to itself, which locks it on every engine.) */
export const lockUser = (db: Tx, id: string): Promise<UserRow | undefined> =>
  db
    .updateTable('users')
    .set((user) => ({ email: user.ref('email') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()

/** The address in lower case. */
export const findUserByEmail = (db: Db, email: string): Promise<UserRow | undefined> =>
  db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()

export async function hasUsers(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}

/** By e-mail address, after that one. */
export function listUsers(db: Db, { after, limit }: Page): Promise<UserRow[]> {
  const query = db.selectFrom('users').selectAll().orderBy('email').limit(limit)
  return (after === undefined ? query : query.where('email', '>', after)).execute()
}

export const listMembershipsAmong = (db: Db, userIds: readonly string[]) =>
  db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['members.user_id', 'workspaces.slug', 'members.role'])
    .where('members.user_id', 'in', userIds)
    .orderBy('workspaces.slug')
    .execute()

export async function renameUser(db: Tx, id: string, name: string, at: number): Promise<void> {
  await db.updateTable('users').set({ name, updated_at: at }).where('id', '=', id).execute()
}

export async function verifyEmail(db: Tx, id: string): Promise<void> {
  await db.updateTable('users').set({ email_verified: 1 }).where('id', '=', id).execute()
}

/** False where there was nothing to change: disabled already. */
export async function disableUser(db: Tx, id: string, at: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ disabled_at: at })
    .where('id', '=', id)
    .where('disabled_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Whoever lost it signs in with the password alone. False where there was none. */
export async function clearSecondFactor(db: Tx, id: string): Promise<boolean> {
  const { numDeletedRows } = await db.deleteFrom('two_factors').where('user_id', '=', id).executeTakeFirst()
  await db.updateTable('users').set({ two_factor_enabled: 0 }).where('id', '=', id).execute()
  return numDeletedRows === 1n
}

export async function enableUser(db: Tx, id: string): Promise<void> {
  await db.updateTable('users').set({ disabled_at: null }).where('id', '=', id).execute()
}

/** What better-auth calls an account of the provider "credential". */
const PASSWORD = 'credential'

export async function setPassword(
  db: Tx,
  { id, userId, password, at }: { id: string; userId: string; password: string; at: number },
): Promise<void> {
  await db
    .insertInto('identities')
    .values({
      id,
      user_id: userId,
      provider_id: PASSWORD,
      account_id: userId,
      password,
      created_at: at,
      updated_at: at,
    })
    .onConflict((conflict) =>
      conflict.columns(['provider_id', 'account_id']).doUpdateSet({ password, updated_at: at }),
    )
    .execute()
}

/** One query whether the address is known or not, so that the time it takes does not tell. */
export const findPasswordByEmail = (db: Db, email: string) =>
  db
    .selectFrom('users')
    .innerJoin('identities', (join) =>
      join.onRef('identities.account_id', '=', 'users.id').on('identities.provider_id', '=', PASSWORD),
    )
    .select(['users.id as userId', 'identities.password as passwordHash'])
    .where('users.email', '=', email)
    .executeTakeFirst()

export async function findPassword(db: Db, userId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('identities')
    .select('password')
    .where('provider_id', '=', PASSWORD)
    .where('account_id', '=', userId)
    .executeTakeFirst()
  return row?.password ?? undefined
}

/** The same, and it stays what it is until the transaction ends. (Written to itself.) */
export async function lockPassword(db: Tx, userId: string): Promise<string | undefined> {
  const row = await db
    .updateTable('identities')
    .set((identity) => ({ password: identity.ref('password') }))
    .where('provider_id', '=', PASSWORD)
    .where('account_id', '=', userId)
    .returning('password')
    .executeTakeFirst()
  return row?.password ?? undefined
}

export async function hasPassword(db: Db, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('identities')
    .select('id')
    .where('provider_id', '=', PASSWORD)
    .where('account_id', '=', userId)
    .executeTakeFirst()
  return row !== undefined
}

/** The role, which stays what it is until the transaction ends. (Written to itself, which locks it on every engine.) */
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

/** The workspace and the role that somebody has in it, if any. */
export const findMembership = (db: Db, slug: string, userId: string) =>
  db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['workspaces.id as workspaceId', 'members.role'])
    .where('workspaces.slug', '=', slug)
    .where('members.user_id', '=', userId)
    .executeTakeFirst()

export const listMemberships = (db: Db, userId: string) =>
  db
    .selectFrom('members')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['workspaces.slug', 'workspaces.name', 'members.role'])
    .where('members.user_id', '=', userId)
    .orderBy('workspaces.name')
    .execute()

export async function listWorkspaceIdsOf(db: Db, userId: string): Promise<string[]> {
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

/** False where the person belongs to it already. */
export async function insertMember(db: Tx, row: Selectable<Tables['members']>): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('members')
    .values(row)
    .onConflict((conflict) => conflict.columns(['workspace_id', 'user_id']).doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

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

/**
 * The people of the workspace, held until the transaction ends: two owners who leave at once take turns. (Written to
 * themselves, which locks them on every engine.)
 */
export async function lockMembers(db: Tx, workspaceId: string): Promise<void> {
  await db
    .updateTable('members')
    .set((row) => ({ role: row.ref('role') }))
    .where('workspace_id', '=', workspaceId)
    .execute()
}
