// API keys of all workspaces, for the operator, who gives a key's id without its workspace.
import type { Overlap } from '../../../lib/credentials/rotation.ts'
import { findKeyById } from '../../store/keys/rows.ts'
import type { WorkspaceRow } from '../../store/workspaces.ts'
import type { Caller, Context, Services } from '../context.ts'
import { isoOrNull } from '../timestamps.ts'
import { getBySlug, workspaceSlices } from '../workspaces/manage.ts'
import { describeLifecycle, keySlices, noSuchKey, revoke } from './lifecycle.ts'
import { rotate } from './rotation.ts'

/** Keys of an archived workspace are rejected, whatever their state. */
export const describeKeyWorkspace = ({ slug, archived_at }: WorkspaceRow) => ({
  workspace: slug,
  workspaceArchivedAt: isoOrNull(archived_at),
})

/** The keys of one workspace, or of all, in slices. */
export async function* listAllKeys(services: Services, slug?: string) {
  const { db } = services.store
  const workspaces = slug === undefined ? workspaceSlices(db) : [[await getBySlug(services, slug)]]
  for await (const slice of workspaces)
    for (const workspace of slice)
      for await (const rows of keySlices(db, workspace.id))
        yield rows.map((row) => ({ ...describeLifecycle(row), ...describeKeyWorkspace(workspace) }))
}

export const revokeAsOperator = async (services: Services, actor: Caller, id: string) =>
  revoke(await keyContext(services, actor, id), id)

export const rotateAsOperator = async (services: Services, actor: Caller, id: string, overlap: Overlap) =>
  rotate(await keyContext(services, actor, id), id, overlap)

async function keyContext(services: Services, actor: Caller, id: string): Promise<Context> {
  const key = await findKeyById(services.store.db, id)
  if (!key) throw noSuchKey(id)
  return { ...services, actor, workspaceId: key.workspace_id }
}
