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

export async function prepareFirstRun(world: World): Promise<FirstRun | undefined> {
  if (await hasWorkspaces(world.store.db)) return undefined
  const workspace = await createWorkspace(world, actor, {
    slug: 'default',
    name: 'Default',
    provisioned: true,
  })
  const key = await createKey({ ...world, actor, workspaceId: workspace.id }, 'first key')
  return { workspace, key }
}
