// Archived workspaces: their keys are rejected on every node and edge, their tunnels are closed, and members
// cannot use them. All data is kept. The operator can restore them for some time.
import { RESTORABLE_DAYS } from '../../../lib/credentials/archive.ts'
import { DAY_MS } from '../../../lib/time.ts'
import type { Tx } from '../../store/engine/store.ts'
import { lockWorkspaceKeys } from '../../store/keys/rows.ts'
import { lockWorkspace, setArchived, type WorkspaceRow } from '../../store/workspaces.ts'
import { awaitPropagation, publishChange } from '../../verification/propagation.ts'
import { reauthorize } from '../actors.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Caller, MemberContext, Services } from '../context.ts'
import { recordUpdate } from '../events/record.ts'
import { Fault, invalid } from '../fault.ts'
import { toIso } from '../timestamps.ts'
import { getBySlug } from './manage.ts'

export const RESTORABLE_MS = RESTORABLE_DAYS * DAY_MS

export const isRestorable = (archivedAt: number, now: number): boolean => now <= archivedAt + RESTORABLE_MS

const describe = (archivedAt: number) => ({
  archivedAt: toIso(archivedAt),
  restorableUntil: toIso(archivedAt + RESTORABLE_MS),
})

export const describeArchive = (archivedAt: number | null) =>
  archivedAt === null ? null : describe(archivedAt)

/** `confirm` is the slug as the user typed it. */
export function archiveAsOwner(ctx: MemberContext, slug: string, confirm: string) {
  if (confirm !== slug) throw invalid('/body/confirm', `must be "${slug}", the slug of the workspace`)
  return archive(ctx, ctx.actor, { id: ctx.workspaceId, slug }, (db) => reauthorize(db, ctx))
}

export async function archiveAsOperator(services: Services, actor: Caller, slug: string) {
  const { id } = await getBySlug(services, slug)
  return archive(services, actor, { id, slug }, (db) => lockWorkspace(db, id))
}

/** `lock` authorizes the actor and locks the workspace. */
async function archive(
  services: Services,
  actor: Caller,
  { id: workspaceId, slug }: Pick<WorkspaceRow, 'id' | 'slug'>,
  lock: (db: Tx) => Promise<Pick<WorkspaceRow, 'name' | 'archived_at'>>,
) {
  const at = services.clock()
  const change = await services.store.transaction(async (db) => {
    const { name, archived_at } = await lock(db)
    if (archived_at !== null) return undefined
    // A tunnel that is being opened is found afterwards, or rejected.
    await lockWorkspaceKeys(db, workspaceId)
    await setArchived(db, workspaceId, at)
    await writeAudit(db, services, {
      workspaceId,
      actor,
      action: 'workspace.archived',
      target: { id: workspaceId, name },
    })
    await recordUpdate(db, services, { workspaceId, actor, changes: { archived: [false, true] } })
    return publishChange(db, services, { kind: 'workspace-archived', subjectId: workspaceId })
  })
  // Even if it was archived before, because the caller may be retrying after a lost response.
  await awaitPropagation(services, change, workspaceId)
  if (!change) throw new Fault('conflict', { message: `The workspace "${slug}" is already archived.` })
  return describe(at)
}

export async function restore(services: Services, actor: Caller, slug: string): Promise<WorkspaceRow> {
  const { id, name } = await getBySlug(services, slug)
  const change = await services.store.transaction(async (db) => {
    const { archived_at } = await lockWorkspace(db, id)
    if (archived_at === null) return undefined
    if (!isRestorable(archived_at, services.clock()))
      throw new Fault('conflict', {
        message:
          `The workspace "${slug}" could be restored until ${describe(archived_at).restorableUntil}. ` +
          'Create another one.',
      })
    await setArchived(db, id, null)
    await writeAudit(db, services, {
      workspaceId: id,
      actor,
      action: 'workspace.restored',
      target: { id, name },
    })
    await recordUpdate(db, services, { workspaceId: id, actor, changes: { archived: [true, false] } })
    return publishChange(db, services, { kind: 'workspace-restored', subjectId: id })
  })
  await awaitPropagation(services, change)
  if (!change) throw new Fault('conflict', { message: `The workspace "${slug}" is not archived.` })
  return getBySlug(services, slug)
}
