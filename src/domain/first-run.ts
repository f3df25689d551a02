// An empty database is given a workspace and a key, so that there is something to try at once.
import { hasWorkspaces, type WorkspaceRow } from '../store/workspaces.ts'
import type { Actor, World } from './context.ts'
import { type CreatedKey, createKey } from './keys.ts'
import { createWorkspace } from './workspaces.ts'

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
    const within: World = { ...world, store: { ...world.store, db, transaction: (work) => work(db) } }
    if (!(await isEmpty(within))) return undefined
    const given = { slug: 'default', name: 'Default', provisioned: true }
    const workspace = await createWorkspace(within, actor, given)
    const key = await createKey({ ...within, actor, workspaceId: workspace.id }, 'first key')
    return { workspace, key }
  })
}
