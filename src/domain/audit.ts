// Who did what to what, and when. Written in the transaction of the act itself: no audit, no act.
import { type AuditRow, countRepetition, insertAudit, listAudit } from '../store/audit.ts'
import { listWorkspaceIdsOf, type Role } from '../store/members.ts'
import type { Tx } from '../store/store.ts'
import { lockUser } from '../store/users.ts'
import type { Actor, Context, Services } from './context.ts'
import { firstIdSince } from './ids.ts'
import { pageOf } from './pagination.ts'
import { isoOf } from './timestamps.ts'

/** What concerns how somebody signs in: members see only their own, admins and owners everybody's. */
const securityActs = [
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

export type SecurityAct = (typeof securityActs)[number]

export type AuditAction =
  | SecurityAct
  | 'workspace.created'
  | 'workspace.provisioned'
  | 'key.created'
  | 'key.revoked'
  | 'edge.created'
  | 'edge.revoked'
  | 'usage.reset'
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

/** How somebody signed in, or what was wrong. Never what was typed. */
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
  /** What the subject is called just now, where that is not kept elsewhere. */
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

/** Whom an act is about that concerns the person and not one workspace. */
export interface Subject {
  id: string
  name: string
}

interface PersonEntry {
  actor: Actor
  action: AuditAction
  person: Subject
  detail?: Detail
}

/** In the log of every workspace that the person belongs to: there it is looked for. */
export async function writeUserAudit(db: Tx, services: Services, entry: PersonEntry): Promise<void> {
  await insertAudit(db, await rowsOnPerson(db, services, entry))
}

const REPETITION_MS = 60_000

/** The same, but failures of the same kind within a minute share a row, so that guessing does not flood the log. */
export async function writeAuthFailure(
  db: Tx,
  services: Services,
  entry: PersonEntry & { action: 'person.sign-in-failed' | 'person.confirmation-failed'; detail: Detail },
): Promise<void> {
  // Failures of one person take turns, so that two at once do not both miss the other's row.
  await lockUser(db, entry.person.id)
  const since = firstIdSince('aud', services.clock() - REPETITION_MS)
  for (const row of await rowsOnPerson(db, services, entry))
    if (!(await countRepetition(db, row, since))) await insertAudit(db, [row])
}

async function rowsOnPerson(
  db: Tx,
  services: Services,
  { person, ...entry }: PersonEntry,
): Promise<AuditRow[]> {
  const workspaces = await listWorkspaceIdsOf(db, person.id)
  const subject = { subjectId: person.id, subjectName: person.name }
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
  const hidden = role === 'member' ? { actions: securityActs, exceptAbout: actor.id } : undefined
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
