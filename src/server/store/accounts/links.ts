// Invitation and password reset links, stored by the hash of their secret.
import type { Selectable } from 'kysely'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

export type LinkRow = Selectable<Tables['links']>

export async function insertLink(db: Tx, row: LinkRow): Promise<void> {
  await db.insertInto('links').values(row).execute()
}

export async function clearEmailProof(db: Tx, id: string): Promise<void> {
  await db.updateTable('links').set({ proves_email: 0 }).where('id', '=', id).execute()
}

/** Finds open links only: neither ended nor expired. */
export const findLink = (db: Db, hash: string, now: number): Promise<LinkRow | undefined> =>
  db
    .selectFrom('links')
    .selectAll()
    .where('hash', '=', hash)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirst()

/** Ends an open link; undefined if there is none. Only one of several concurrent callers succeeds. */
export const endLink = (db: Tx, hash: string, now: number): Promise<LinkRow | undefined> =>
  db
    .updateTable('links')
    .set({ ended_at: now })
    .where('hash', '=', hash)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

/** Open invitations to a workspace, newest first. */
export const listInvitations = (db: Db, workspaceId: string, now: number): Promise<LinkRow[]> =>
  db
    .selectFrom('links')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .orderBy('id', 'desc')
    .execute()

/** Whether anyone can accept an invitation to any workspace. */
export async function hasOpenInvitation(db: Db, now: number): Promise<boolean> {
  const row = await db
    .selectFrom('links')
    .select('id')
    .where('purpose', '=', 'join')
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Open invitations of an address to workspaces that are not archived, in locking order. */
export const listOpenInvitationsTo = (db: Db, email: string, now: number): Promise<LinkRow[]> =>
  db
    .selectFrom('links')
    .innerJoin('workspaces', 'workspaces.id', 'links.workspace_id')
    .selectAll('links')
    .where('links.purpose', '=', 'join')
    .where('links.email', '=', email)
    .where('links.ended_at', 'is', null)
    .where('links.expires_at', '>', now)
    .where('workspaces.archived_at', 'is', null)
    .orderBy('links.workspace_id')
    .execute()

/** Returns the invitation; undefined if the workspace has no such open invitation. */
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

/** What identifies several links; null matches links without a value. */
type LinkMatch = Partial<Pick<LinkRow, 'purpose' | 'workspace_id' | 'creator_id' | 'email'>>

/** Ends all open links that match. Setup links, which create the first owner, have no address. */
export async function endLinks(db: Tx, matching: LinkMatch, now: number): Promise<void> {
  await db
    .updateTable('links')
    .set({ ended_at: now })
    .where((row) => row.and(matching))
    .where('ended_at', 'is', null)
    .execute()
}

interface RecentLinks {
  purpose: LinkRow['purpose']
  matching: LinkMatch
  since: number
  max: number
}

/** Creation times of the latest links, open or ended, at most `max`. Excludes invitations by the operator. */
export async function recentLinkTimes(
  db: Db,
  { purpose, matching, since, max }: RecentLinks,
): Promise<number[]> {
  const rows = await db
    .selectFrom('links')
    .select('created_at')
    .where((row) => row.and(matching))
    .where('purpose', '=', purpose)
    .where('created_at', '>', since)
    .$if(purpose === 'join', (query) => query.where('creator_id', 'is not', null))
    .orderBy('created_at', 'desc')
    .limit(max)
    .execute()
  return rows.map((row) => row.created_at)
}

/** Locks the rows; an update without change does so on both engines. */
export async function lockRecentLinksTo(db: Tx, email: string, since: number): Promise<void> {
  await db
    .updateTable('links')
    .set((row) => ({ hash: row.ref('hash') }))
    .where('email', '=', email)
    .where('created_at', '>', since)
    .execute()
}
