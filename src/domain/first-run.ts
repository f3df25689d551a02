// An empty database is given a workspace, a key and a link for its first owner, so that there is something to try at once.
import { hasWorkspaces, type WorkspaceRow } from '../store/workspaces.ts'
import type { Actor, World } from './context.ts'
import { addKey, type CreatedKey, newKey } from './keys.ts'
import { type LinkMade, makeLink } from './links.ts'
import { addWorkspace } from './workspaces.ts'

const actor: Actor = { kind: 'operator', id: 'first start' }

export interface FirstRun {
  workspace: WorkspaceRow
  key: CreatedKey
  /** For whoever becomes the first owner. */
  link: LinkMade
}

export const isEmpty = async (world: World): Promise<boolean> => !(await hasWorkspaces(world.store.db))

/** Undefined where there is something already, or another process is just quicker. All or nothing is made. */
export async function prepareFirstRun(world: World): Promise<FirstRun | undefined> {
  if (!(await isEmpty(world))) return undefined
  return world.store.transaction(async (db) => {
    if (await hasWorkspaces(db)) return undefined
    const workspace = await addWorkspace(db, world, actor, {
      slug: 'default',
      name: 'Default',
      provisioned: true,
    })
    const ctx = { ...world, actor, workspaceId: workspace.id }
    const key = await addKey(db, ctx, newKey(world, 'first key'))
    const link = await makeLink(db, world, {
      purpose: 'join',
      email: null,
      workspaceId: workspace.id,
      role: 'owner',
      createdBy: { id: null, name: `operator ${actor.id}` },
      provesEmail: true,
    })
    return { workspace, key, link }
  })
}
