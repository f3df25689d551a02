// Links that let somebody in. Kept by the hash of what makes them work.
import type { Selectable } from 'kysely'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type LinkRow = Selectable<Tables['links']>

export async function insertLink(db: Tx, row: LinkRow): Promise<void> {
  await db.insertInto('links').values(row).execute()
}

/** Only one that still works. */
export const findLink = (db: Db, hash: string, now: number): Promise<LinkRow | undefined> =>
  db
    .selectFrom('links')
    .selectAll()
    .where('hash', '=', hash)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst()

/** Uses it up; undefined where somebody was quicker, or it works no more. */
export const endLink = (db: Tx, hash: string, now: number): Promise<LinkRow | undefined> =>
  db
    .updateTable('links')
    .set({ ended_at: now })
    .where('hash', '=', hash)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

/** The open invitations to a workspace. */
export const listInvitations = (db: Db, workspaceId: string, now: number): Promise<LinkRow[]> =>
  db
    .selectFrom('links')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .orderBy('id', 'desc')
    .execute()

/** The open invitations of an address, to whichever workspace. */
export const listLinksTo = (db: Db, email: string, now: number): Promise<LinkRow[]> =>
  db
    .selectFrom('links')
    .selectAll()
    .where('purpose', '=', 'join')
    .where('email', '=', email)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .execute()

/** The invitation; undefined where the workspace has no such one open. */
export const revokeInvitation = (
  db: Tx,
  workspaceId: string,
  id: string,
  now: number,
): Promise<LinkRow | undefined> =>
  db
    .updateTable('links')
    .set({ ended_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

/** What somebody has handed out in a workspace works no more. */
export async function endInvitationsBy(
  db: Tx,
  workspaceId: string,
  creatorId: string,
  now: number,
): Promise<void> {
  await db
    .updateTable('links')
    .set({ ended_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('creator_id', '=', creatorId)
    .where('ended_at', 'is', null)
    .execute()
}

/** Links that name nobody, by which a workspace is set up, are for its first owner. */
export async function endSetUpLinks(db: Tx, workspaceId: string, now: number): Promise<void> {
  await db
    .updateTable('links')
    .set({ ended_at: now })
    .where('workspace_id', '=', workspaceId)
    .where('email', 'is', null)
    .where('ended_at', 'is', null)
    .execute()
}

/** Whatever was sent to the address before works no more. */
export async function endLinksFor(
  db: Tx,
  email: string,
  purpose: LinkRow['purpose'],
  workspaceId: string | null,
  now: number,
): Promise<void> {
  await db
    .updateTable('links')
    .set({ ended_at: now })
    .where('email', '=', email)
    .where('purpose', '=', purpose)
    .where('workspace_id', workspaceId === null ? 'is' : '=', workspaceId)
    .where('ended_at', 'is', null)
    .execute()
}

interface LinkCount {
  purpose: LinkRow['purpose']
  of: Partial<Record<'workspace_id' | 'creator_id' | 'email', string>>
  since: number
  most: number
}

/** When the latest links were created, ended or not: up to `most`. Of invitations only those by users, not by operators. */
export async function recentLinkTimes(db: Db, { purpose, of, since, most }: LinkCount): Promise<number[]> {
  const rows = await db
    .selectFrom('links')
    .select('created_at')
    .where((row) => row.and(of))
    .where('purpose', '=', purpose)
    .where('created_at', '>', since)
    .$if(purpose === 'join', (query) => query.where('creator_id', 'is not', null))
    .orderBy('created_at', 'desc')
    .limit(most)
    .execute()
  return rows.map((row) => row.created_at)
}

/** Until the transaction ends, nobody else locks them. (Written to themselves, which locks them on every engine.) */
export async function lockRecentLinksTo(db: Tx, email: string, since: number): Promise<void> {
  await db
    .updateTable('links')
    .set((row) => ({ hash: row.ref('hash') }))
    .where('email', '=', email)
    .where('created_at', '>', since)
    .execute()
}
