import { createKey, listEverywhere, revokeAnywhere } from '../../domain/keys.ts'
import { getBySlug } from '../../domain/workspaces.ts'
import type { Io } from '../io.ts'
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
  await withWorld(io, (world) =>
    io.list(listEverywhere(world, workspace), {
      ID: (key) => key.id,
      WORKSPACE: (key) => key.workspace,
      LABEL: (key) => key.label,
      CREATED: (key) => key.createdAt,
      'LAST USED': (key) => key.lastUsedAt ?? 'never',
      STATE: (key) => (key.revokedAt ? `revoked ${key.revokedAt}` : 'active'),
    }),
  )
}

export async function revoke(id: string, io: Io): Promise<void> {
  const revoked = await withWorld(io, (world, actor) => revokeAnywhere(world, actor, id))
  io.data(revoked, `Revoked ${id}.`)
}
