// Who did what to what, and when. Written in the transaction of the act itself: no audit, no act.
import { insertAudit, listAudit } from '../store/audit.ts'
import type { Tx } from '../store/store.ts'
import type { Actor, Context, World } from './context.ts'
import { isoOf } from './instants.ts'
import { pageOf } from './pages.ts'

export type Act =
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
  | 'person.reset-link-made'
  | 'person.password-reset'
  | 'person.password-changed'
  | 'person.second-factor-begun'
  | 'person.second-factor-added'
  | 'person.second-factor-removed'
  | 'person.second-factor-cleared'
  | 'person.session-ended'
  | 'person.signed-out-everywhere'
  | 'person.disabled'
  | 'person.enabled'

interface Entry {
  workspaceId: string | null
  actor: Actor
  action: Act
  subjectId: string
  /** What the subject is called just now, where that is not kept elsewhere. */
  subjectName?: string
}

export const recordAct = (
  db: Tx,
  world: World,
  { workspaceId, actor, action, subjectId, subjectName }: Entry,
): Promise<void> =>
  insertAudit(db, {
    id: world.ids('aud'),
    workspace_id: workspaceId,
    at: world.clock(),
    actor_kind: actor.kind,
    actor_id: actor.id,
    action,
    subject_id: subjectId,
    actor_name: actor.kind === 'person' ? actor.name : null,
    subject_name: subjectName ?? null,
  })

/** Newest first, a page at a time. */
export async function readAudit(
  ctx: Context,
  { limit = 50, cursor }: { limit?: number | undefined; cursor?: string | undefined },
) {
  const rows = await listAudit(ctx.store.db, ctx.workspaceId, { after: cursor, limit: limit + 1 })
  const { page, next } = pageOf(rows, limit)
  const entries = page.map((row) => ({
    id: row.id,
    at: isoOf(row.at),
    actor: { kind: row.actor_kind, id: row.actor_id, name: row.actor_name ?? row.actor_label },
    action: row.action,
    subject: { id: row.subject_id, name: row.subject_name ?? row.subject_label },
  }))
  return { entries, next }
}
