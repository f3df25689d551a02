// The audit log. Entries are written in the transaction of the action: if one cannot be written, the action
// fails. Stored action names say `person` for a user.
import { type AuditRow, countRepetition, insertAudit, listAudit } from '../store/audit.ts'
import { listWorkspaceIdsOf, type Role } from '../store/members.ts'
import type { Tx } from '../store/store.ts'
import { lockUser } from '../store/users.ts'
import type { Actor, Context, Services } from './context.ts'
import { firstIdSince } from './ids.ts'
import { pageOf } from './pagination.ts'
import { isoOf } from './timestamps.ts'

/** Actions on accounts: members see their own only, admins and owners those of all members. */
const accountActions = [
  'person.signed-in',
  'person.sign-in-failed',
  'person.confirmation-failed',
  'person.signed-out',
  'person.signed-out-everywhere',
  'person.session-ended',
  'person.identity-linked',
  'person.reset-link-made',
  'person.password-reset',
  'person.password-changed',
  'person.second-factor-begun',
  'person.second-factor-added',
  'person.second-factor-removed',
  'person.second-factor-cleared',
] as const

type AccountAction = (typeof accountActions)[number]

export type AuditAction =
  | AccountAction
  | 'workspace.created'
  | 'workspace.provisioned'
  | 'key.created'
  | 'key.revoked'
  | 'edge.created'
  | 'edge.revoked'
  | 'usage.reset'
  | 'tunnel.closed'
  | 'name.reserved'
  | 'name.released'
  | 'name.rules-changed'
  | 'person.invited'
  | 'invitation.revoked'
  | 'person.joined'
  | 'person.made-member'
  | 'person.made-admin'
  | 'person.made-owner'
  | 'person.removed'
  | 'person.left'
  | 'person.renamed'
  | 'person.disabled'
  | 'person.enabled'

/** Sign-in method, or reason of a failure. Never contains user input. */
export type Detail =
  | 'password'
  | 'code'
  | 'recovery-code'
  | 'sso'
  | 'sso-not-linked'
  | 'sso-email-unverified'
  | 'disabled'

interface Entry {
  workspaceId: string | null
  actor: Actor
  action: AuditAction
  subjectId: string
  /** Name of the subject at this time, if it is not stored elsewhere. */
  subjectName?: string
  detail?: Detail
}

export const writeAudit = (db: Tx, services: Services, entry: Entry): Promise<void> =>
  insertAudit(db, [rowOf(services, entry)])

const rowOf = (
  services: Services,
  { workspaceId, actor, action, subjectId, subjectName, detail }: Entry,
): AuditRow => ({
  id: services.ids('aud'),
  workspace_id: workspaceId,
  at: services.clock(),
  actor_kind: actor.kind,
  actor_id: actor.id,
  action,
  subject_id: subjectId,
  actor_name: actor.kind === 'person' ? actor.name : null,
  subject_name: subjectName ?? null,
  address: actor.kind === 'visitor' ? actor.id : actor.kind === 'person' ? (actor.address ?? null) : null,
  detail: detail ?? null,
  count: null,
})

/** The user that an action concerns. */
export interface Subject {
  id: string
  name: string
}

interface UserEntry {
  actor: Actor
  action: AuditAction
  user: Subject
  detail?: Detail
}

/** Writes the entry to the log of every workspace of the user. */
export async function writeUserAudit(db: Tx, services: Services, entry: UserEntry): Promise<void> {
  await insertAudit(db, await userRows(db, services, entry))
}

const REPETITION_MS = 60_000

/**
 * Like `writeUserAudit`, but equal failures within a minute share an entry, so that guessing does not flood
 * the log.
 */
export async function writeAuthFailure(
  db: Tx,
  services: Services,
  entry: UserEntry & { action: 'person.sign-in-failed' | 'person.confirmation-failed'; detail: Detail },
): Promise<void> {
  // Serializes the failures of a user, so that concurrent ones find each other's row.
  await lockUser(db, entry.user.id)
  const since = firstIdSince('aud', services.clock() - REPETITION_MS)
  for (const row of await userRows(db, services, entry))
    if (!(await countRepetition(db, row, since))) await insertAudit(db, [row])
}

async function userRows(db: Tx, services: Services, { user, ...entry }: UserEntry): Promise<AuditRow[]> {
  const workspaces = await listWorkspaceIdsOf(db, user.id)
  const subject = { subjectId: user.id, subjectName: user.name }
  return (workspaces.length > 0 ? workspaces : [null]).map((workspaceId) =>
    rowOf(services, { workspaceId, ...entry, ...subject }),
  )
}

/** Newest first, a page at a time. */
export async function readAudit(
  ctx: Context & { role: Role },
  { limit = 50, cursor }: { limit?: number | undefined; cursor?: string | undefined },
) {
  const { role, actor, workspaceId } = ctx
  const hidden = role === 'member' ? { actions: accountActions, exceptAbout: actor.id } : undefined
  const rows = await listAudit(ctx.store.db, workspaceId, { after: cursor, limit: limit + 1 }, hidden)
  const { page, next } = pageOf(rows, limit)
  const entries = page.map((row) => ({
    id: row.id,
    at: isoOf(row.at),
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name ?? row.actor_label },
    action: row.action,
    subject: { id: row.subject_id, name: row.subject_name ?? row.subject_label },
    address: hidden && row.actor_id !== actor.id && row.subject_id !== actor.id ? null : row.address,
    detail: row.detail,
    count: row.count ?? 1,
  }))
  return { entries, next }
}
