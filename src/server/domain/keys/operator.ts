// API keys of all workspaces, for the operator, who gives a key's id without its workspace.
import type { Overlap } from '../../../lib/credentials/rotation.ts'
import type { Tx } from '../../store/engine/store.ts'
import { findKeyById, listAllKeys, revokeKeys } from '../../store/keys/rows.ts'
import type { WorkspaceRow } from '../../store/workspaces.ts'
import type { Caller, Context, Services } from '../context.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { isoOrNull } from '../timestamps.ts'
import { getBySlug } from '../workspaces/manage.ts'
import { describeLifecycle, keySlices, noSuchKey, recordRevoked, revoke } from './lifecycle.ts'
import { rotate } from './rotation.ts'

/** Keys of an archived workspace are rejected, whatever their state. */
export const describeKeyWorkspace = ({ slug, archived_at }: Pick<WorkspaceRow, 'slug' | 'archived_at'>) => ({
  workspace: slug,
  workspaceArchivedAt: isoOrNull(archived_at),
})

/** The keys of one workspace, or of all, in slices. */
export async function* listForOperator(services: Services, slug?: string) {
  const { db } = services.store
  if (slug === undefined) {
    type Row = Awaited<ReturnType<typeof listAllKeys>>[number]
    const slices = readSlices<Row>((last) => listAllKeys(db, { after: last?.id, limit: SLICE_ROWS }))
    for await (const rows of slices)
      yield rows.map((row) => ({ ...describeLifecycle(row), ...describeKeyWorkspace(row) }))
    return
  }
  const workspace = await getBySlug(services, slug)
  for await (const rows of keySlices(db, workspace.id))
    yield rows.map((row) => ({ ...describeLifecycle(row), ...describeKeyWorkspace(workspace) }))
}

export const revokeAsOperator = async (services: Services, actor: Caller, id: string) =>
  revoke(await keyContext(services, actor, id), id)

/** Revokes those of the keys that are active. The caller publishes the changes. */
export const revokeMany = async (db: Tx, services: Services, actor: Caller, ids: readonly string[]) =>
  recordRevoked(db, services, actor, await revokeKeys(db, ids, services.clock()))

export const rotateAsOperator = async (services: Services, actor: Caller, id: string, overlap: Overlap) =>
  rotate(await keyContext(services, actor, id), id, overlap)

async function keyContext(services: Services, actor: Caller, id: string): Promise<Context> {
  const key = await findKeyById(services.store.db, id)
  if (!key) throw noSuchKey(id)
  return { ...services, actor, workspaceId: key.workspace_id }
}
