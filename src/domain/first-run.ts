// An empty database is given a workspace and a key, so that there is something to try at once.
import { hasWorkspaces, type WorkspaceRow } from '../store/workspaces.ts'
import type { Actor, World } from './context.ts'
import { addKey, type CreatedKey, newKey } from './keys.ts'
import { addWorkspace } from './workspaces.ts'

const actor: Actor = { kind: 'operator', id: 'first start' }

export interface FirstRun {
  workspace: WorkspaceRow
  key: CreatedKey
}

export const isEmpty = async (world: World): Promise<boolean> => !(await hasWorkspaces(world.store.db))

/** Undefined where there is something already, or another process is just quicker. Both or neither are made. */
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
    return { workspace, key: await addKey(db, ctx, newKey(world, 'first key')) }
  })
}
