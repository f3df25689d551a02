import { createKey, listEverywhere, revokeAnywhere } from '../../domain/keys.ts'
import { getBySlug } from '../../domain/workspaces.ts'
import { type Io, table } from '../io.ts'
import { withWorld } from './with-world.ts'

export async function create(given: { workspace: string; label: string | undefined }, io: Io): Promise<void> {
  const key = await withWorld(io, async (world, actor) => {
    const { id: workspaceId } = await getBySlug(world, given.workspace)
    return createKey({ ...world, actor, workspaceId }, given.label)
  })
  io.say(`Minted ${key.id} for the workspace "${given.workspace}". Save the key: it is not shown again.`)
  io.data(key, key.token)
}

export async function list(workspace: string | undefined, io: Io): Promise<void> {
  const keys = await withWorld(io, (world) => listEverywhere(world, workspace))
  const rows = keys.map((key) => [
    key.id,
    key.workspace,
    key.label,
    key.createdAt,
    key.lastUsedAt ?? 'never',
    key.revokedAt ? `revoked ${key.revokedAt}` : 'active',
  ])
  io.data(keys, table(['ID', 'WORKSPACE', 'LABEL', 'CREATED', 'LAST USED', 'STATE'], rows))
}

export async function revoke(id: string, io: Io): Promise<void> {
  const revoked = await withWorld(io, (world, actor) => revokeAnywhere(world, actor, id))
  io.data(revoked, `Revoked ${id}.`)
}
