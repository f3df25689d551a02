// Initializes an empty database with a workspace, an API key and a setup link for its first owner.
import { hasWorkspaces, type WorkspaceRow } from '../../store/workspaces.ts'
import { type CreatedLink, createLink } from '../accounts/links.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Caller, Services } from '../context.ts'
import { addKey, type CreatedKey, newKey } from '../keys/lifecycle.ts'
import { addWorkspace } from '../workspaces/manage.ts'

const actor: Caller = { kind: 'operator', id: 'first start' }

export interface FirstRun {
  workspace: WorkspaceRow
  key: CreatedKey
  /** Setup link for the first owner. */
  link: CreatedLink
}

export const isEmpty = async (services: Services): Promise<boolean> =>
  !(await hasWorkspaces(services.store.db))

/** Returns undefined if there is a workspace already, or another process creates one simultaneously. */
export async function prepareFirstRun(services: Services): Promise<FirstRun | undefined> {
  if (!(await isEmpty(services))) return undefined
  return services.store.transaction(async (db) => {
    if (await hasWorkspaces(db)) return undefined
    const workspace = await addWorkspace(db, services, actor, {
      slug: 'default',
      name: 'Default',
      provisioned: true,
    })
    const ctx = { ...services, actor, workspaceId: workspace.id }
    const key = await addKey(db, ctx, workspace, newKey(ctx, workspace, { label: 'first key', userId: null }))
    const link = await createLink(db, services, {
      purpose: 'join',
      email: null,
      workspaceId: workspace.id,
      role: 'owner',
      createdBy: { id: null, name: `operator ${actor.id}` },
      provesEmail: true,
    })
    await writeAudit(db, services, {
      workspaceId: workspace.id,
      actor,
      action: 'user.invited',
      target: { id: link.id, name: 'the first owner' },
      changes: { role: [null, 'owner'] },
    })
    return { workspace, key, link }
  })
}
