// An empty database is given a workspace and a key, so that there is something to try at once.
import { hasWorkspaces, type WorkspaceRow } from '../store/workspaces.ts'
import type { Actor, World } from './context.ts'
import { Fault } from './fault.ts'
import { type CreatedKey, createKey } from './keys.ts'
import { createWorkspace } from './workspaces.ts'

const actor: Actor = { kind: 'operator', id: 'first start' }

export interface FirstRun {
  workspace: WorkspaceRow
  key: CreatedKey
}

export const isEmpty = async (world: World): Promise<boolean> => !(await hasWorkspaces(world.store.db))

/** Undefined where there is something already, or another process is just quicker. */
export async function prepareFirstRun(world: World): Promise<FirstRun | undefined> {
  if (!(await isEmpty(world))) return undefined
  const given = { slug: 'default', name: 'Default', provisioned: true }
  const workspace = await createWorkspace(world, actor, given).catch((error: unknown) => {
    if (error instanceof Fault && error.code === 'invalid_request') return undefined
    throw error
  })
  if (!workspace) return undefined
  const key = await createKey({ ...world, actor, workspaceId: workspace.id }, 'first key')
  return { workspace, key }
}
