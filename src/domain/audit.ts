// Who did what to what, and when. Written in the transaction of the act itself: no audit, no act.
import { insertAudit } from '../store/audit.ts'
import type { Db } from '../store/store.ts'
import type { Actor, World } from './context.ts'

export type Act =
  | 'workspace.created'
  | 'workspace.provisioned'
  | 'key.created'
  | 'key.revoked'
  | 'edge.created'
  | 'edge.revoked'

interface Entry {
  workspaceId: string | null
  actor: Actor
  action: Act
  subjectId: string
}

export const recordAct = (
  db: Db,
  world: World,
  { workspaceId, actor, action, subjectId }: Entry,
): Promise<void> =>
  insertAudit(db, {
    id: world.ids('aud'),
    workspace_id: workspaceId,
    at: world.clock(),
    actor_kind: actor.kind,
    actor_id: actor.id,
    action,
    subject_id: subjectId,
  })
