// User accounts.
import type { Selectable } from 'kysely'
import { isOneOf, listParameter } from '../engine/bulk.ts'
import type { Page } from '../engine/page.ts'
import { insertUnlessExists } from '../engine/rows.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

export type UserRow = Selectable<Tables['users']>

/** Returns false if the address has an account already. */
export const insertUser = (db: Tx, row: UserRow): Promise<boolean> =>
  insertUnlessExists(db, 'users', row, ['email'])

export const findUser = (db: Db, id: string): Promise<UserRow | undefined> =>
  db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirst()

export const listUserNames = (db: Db, ids: readonly string[]) =>
  db
    .selectFrom('users')
    .select(['id', 'name'])
    .where(isOneOf(db, 'id', listParameter(db, ids)))
    .execute()

/** Locks the row; an update without change does so on both engines. */
export const lockUser = (db: Tx, id: string): Promise<UserRow | undefined> =>
  db
    .updateTable('users')
    .set((user) => ({ email: user.ref('email') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()

/** `email` must be lower case. */
export const findUserByEmail = (db: Db, email: string): Promise<UserRow | undefined> =>
  db.selectFrom('users').selectAll().where('email', '=', email).executeTakeFirst()

export async function hasUsers(db: Db): Promise<boolean> {
  return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) !== undefined
}

/** Sorted by email address. */
export function listUsers(db: Db, { after, limit }: Page): Promise<UserRow[]> {
  const query = db.selectFrom('users').selectAll().orderBy('email').limit(limit)
  return (after === undefined ? query : query.where('email', '>', after)).execute()
}

export async function renameUser(db: Tx, id: string, name: string, at: number): Promise<void> {
  await db.updateTable('users').set({ name, updated_at: at }).where('id', '=', id).execute()
}

export async function verifyEmail(db: Tx, id: string): Promise<void> {
  await db.updateTable('users').set({ email_verified: 1 }).where('id', '=', id).execute()
}

/** Disables the user, or enables them if `at` is null. Returns false if that changes nothing. */
export async function setDisabledAt(db: Tx, id: string, at: number | null): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('users')
    .set({ disabled_at: at })
    .where('id', '=', id)
    .where('disabled_at', at === null ? 'is not' : 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}
