// SQL of notices to owners and admins of a workspace, and of their emails. A digest is one email for the
// notices of a workspace that are created at the same time.
import { type Selectable, sql } from 'kysely'
import { executeBulk } from '../engine/bulk.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { inState } from '../keys/state.ts'

type NoticeRow = Selectable<Tables['notices']>
export type NoticeMailRow = Selectable<Tables['notice_mails']>

/** Condition on `api_keys`: the key has an active successor. */
const hasSuccessor = (db: Db) => sql<boolean>`exists (select 1 from api_keys as successor
  where successor.workspace_id = api_keys.workspace_id and successor.lineage_id = api_keys.lineage_id
    and successor.generation > api_keys.generation
    and ${inState(db, 'active')})`

export interface ExpiringKey {
  id: string
  label: string
  workspaceId: string
  createdAt: number
  expiresAt: number
}

/** The key after which a slice begins. */
export type ExpiryCursor = Pick<ExpiringKey, 'expiresAt' | 'id'>

/**
 * Keys that are not revoked and have no active successor, next to expire first. Without those of agents,
 * which sign in again. Times are parameters, because PostgreSQL uses no index for a comparison with its
 * clock.
 */
export const listExpiringKeys = (
  db: Db,
  { after, until, limit }: { after: ExpiryCursor; until: number; limit: number },
): Promise<ExpiringKey[]> =>
  db
    .selectFrom('api_keys')
    .select(['id', 'label', 'workspace_id as workspaceId', 'created_at as createdAt'])
    .select(sql<number>`expires_at`.as('expiresAt'))
    .where('revoked_at', 'is', null)
    .where('expires_at', '>=', after.expiresAt)
    .where('expires_at', '<=', until)
    .where(sql<boolean>`(expires_at, id) > (${after.expiresAt}, ${after.id})`)
    .where('agent_access', 'is', null)
    .where((key) => key.not(hasSuccessor(db)))
    .where(
      sql<boolean>`(select archived_at from workspaces where workspaces.id = api_keys.workspace_id) is null`,
    )
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute()

/**
 * Expired keys without a notice of this kind, in workspaces that had a webhook endpoint when the key expired;
 * first to expire first.
 */
export const listExpiredKeys = (
  db: Db,
  { kind, after, until, limit }: { kind: string; after: number; until: number; limit: number },
) =>
  db
    .selectFrom('api_keys')
    .select(['id', 'workspace_id', 'label', 'created_at', 'expires_at'])
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', after)
    .where('expires_at', '<=', until)
    .where(
      sql<boolean>`exists (select 1 from webhook_endpoints as endpoint
        where endpoint.workspace_id = api_keys.workspace_id and endpoint.disabled_at is null
          and endpoint.created_at <= api_keys.expires_at)`,
    )
    .where(
      sql<boolean>`not exists (select 1 from notices
        where notices.kind = ${kind} and notices.subject_id = api_keys.id)`,
    )
    .orderBy('expires_at')
    .orderBy('id')
    .limit(limit)
    .execute()

/** Returns the subjects of the notices that did not exist yet. */
export async function insertNotices(
  db: Tx,
  rows: readonly (Omit<NoticeRow, 'detail'> & Partial<Pick<NoticeRow, 'detail'>>)[],
): Promise<Set<string>> {
  const inserted = await db
    .insertInto('notices')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['kind', 'subject_id', 'dedup_key']).doNothing())
    .returning('subject_id')
    .execute()
  return new Set(inserted.map((row) => row.subject_id))
}

export type NoticeId = Pick<NoticeRow, 'kind' | 'subject_id' | 'dedup_key'>

/** Returns the notices that exist. */
export const listNoticed = (db: Db, ids: readonly NoticeId[]): Promise<NoticeId[]> =>
  executeBulk<NoticeId>(
    db,
    { kind: 'text', subject_id: 'text', dedup_key: 'text' },
    ids.map(({ kind, subject_id, dedup_key }) => [kind, subject_id, dedup_key]),
    `select notices.kind, notices.subject_id, notices.dedup_key from input join notices
     on notices.kind = input.kind and notices.subject_id = input.subject_id
       and notices.dedup_key = input.dedup_key`,
  )

/** Queues the emails of a digest. They are due at once. */
export async function insertMails(
  db: Tx,
  { digest_id, workspace_id, created_at }: Pick<NoticeMailRow, 'digest_id' | 'workspace_id' | 'created_at'>,
  userIds: readonly string[],
): Promise<void> {
  const mail = { digest_id, workspace_id, created_at, attempts: 0, due_at: 0 }
  await db
    .insertInto('notice_mails')
    .values(userIds.map((user_id) => ({ ...mail, user_id })))
    .execute()
}

/** Counts the digests sent to the workspace since a time: about key requests, or about anything else. */
export async function countDigests(
  db: Db,
  workspaceId: string,
  { since, areRequests }: { since: number; areRequests: boolean },
): Promise<number> {
  const { count } = await db
    .selectFrom('notice_mails as mail')
    .select((row) => row.fn.count('mail.digest_id').distinct().as('count'))
    .where('mail.workspace_id', '=', workspaceId)
    .where('mail.created_at', '>=', since)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('notices')
          .select('kind')
          .whereRef('notices.digest_id', '=', 'mail.digest_id')
          .where('kind', areRequests ? 'in' : 'not in', ['key-request', 'key-request-decided']),
      ),
    )
    .executeTakeFirstOrThrow()
  return Number(count)
}

const selectNoticedKeys = (db: Db) =>
  db
    .selectFrom('notices')
    .innerJoin('api_keys', 'api_keys.id', 'notices.subject_id')
    .select(['api_keys.id', 'api_keys.label', 'api_keys.last_four as lastFour'])
    .select(sql<number>`api_keys.expires_at`.as('expiresAt'))
    .where('notices.kind', '=', 'key-expiry')
    .where(inState(db, 'active'))
    .where((key) => key.not(hasSuccessor(db)))

/** Keys with a notice that have not expired, next to expire first. */
export const listNoticedKeys = (db: Db, workspaceId: string, limit: number) =>
  selectNoticedKeys(db)
    .distinct()
    .where('notices.workspace_id', '=', workspaceId)
    .orderBy('expiresAt')
    .orderBy('api_keys.id')
    .limit(limit)
    .execute()

/** Like `listNoticedKeys`, for one digest. */
export const listDigestKeys = (db: Db, digestId: string, limit: number) =>
  selectNoticedKeys(db)
    .where('notices.digest_id', '=', digestId)
    .orderBy('expiresAt')
    .orderBy('api_keys.id')
    .limit(limit)
    .execute()

/** The text of a digest's alert; undefined if the digest is about keys that expire. */
export async function findDetail(db: Db, digestId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('notices')
    .select('detail')
    .where('digest_id', '=', digestId)
    .where('detail', 'is not', null)
    .limit(1)
    .executeTakeFirst()
  return row?.detail ?? undefined
}

/** Edges that have not reported since the alert about them. */
export const listSilent = (db: Db, workspaceId: string, limit: number) =>
  db
    .selectFrom('notices')
    .innerJoin('edges', 'edges.id', 'notices.subject_id')
    .innerJoin('edge_sessions as session', 'session.edge_id', 'edges.id')
    .select(['edges.id', 'edges.name', sql<number>`session.last_sync_at`.as('lastSyncAt')])
    .where('notices.workspace_id', '=', workspaceId)
    .where('notices.kind', '=', 'edge-silent')
    .where('edges.revoked_at', 'is', null)
    .where(
      sql<boolean>`notices.dedup_key = cast(session.last_sync_at as text) || ' ' || notices.workspace_id`,
    )
    .orderBy('edges.name')
    .limit(limit)
    .execute()

/** Keys that were used a lot although they are not active. */
export const listRejected = (db: Db, workspaceId: string, since: number, limit: number) =>
  db
    .selectFrom('notices')
    .innerJoin('api_keys', 'api_keys.id', 'notices.subject_id')
    .select(['api_keys.id', 'api_keys.label', 'api_keys.last_four as lastFour'])
    .where('notices.workspace_id', '=', workspaceId)
    .where('notices.kind', '=', 'key-rejected')
    .where('notices.created_at', '>=', since)
    .orderBy('notices.created_at', 'desc')
    .limit(limit)
    .execute()

/** The recipient of an email; undefined if disabled, or without one of the roles. */
export const findRecipient = (
  db: Db,
  { workspace_id, user_id }: NoticeMailRow,
  roles: readonly ('owner' | 'admin' | 'member')[],
) =>
  db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .innerJoin('workspaces', 'workspaces.id', 'members.workspace_id')
    .select(['users.email', 'workspaces.slug', 'workspaces.name'])
    .where('members.workspace_id', '=', workspace_id)
    .where('members.user_id', '=', user_id)
    .where('members.role', 'in', roles)
    .where('users.disabled_at', 'is', null)
    .where('workspaces.archived_at', 'is', null)
    .executeTakeFirst()
