import { createKey, listAllKeys, revokeAsOperator } from '../../domain/keys.ts'
import { getBySlug } from '../../domain/workspaces.ts'
import type { Io } from '../io.ts'
import { printState } from '../key-state.ts'
import { withServices } from './with-services.ts'

export async function create(given: { workspace: string; label: string | undefined }, io: Io): Promise<void> {
  const key = await withServices(io, async (services, actor) => {
    const { id: workspaceId } = await getBySlug(services, given.workspace)
    return createKey({ ...services, actor, workspaceId }, given.label)
  })
  io.info(`Minted ${key.id} for the workspace "${given.workspace}". Save the key: it is not shown again.`)
  io.data(key, key.token)
}

export async function list(workspace: string | undefined, io: Io): Promise<void> {
  await withServices(io, (services) =>
    io.list(listAllKeys(services, workspace), {
      ID: (key) => key.id,
      WORKSPACE: (key) => key.workspace,
      LABEL: (key) => key.label,
      CREATED: (key) => key.createdAt,
      'LAST USED': (key) => key.lastUsedAt ?? 'never',
      STATE: printState,
    }),
  )
}

export async function revoke(id: string, io: Io): Promise<void> {
  const revoked = await withServices(io, (services, actor) => revokeAsOperator(services, actor, id))
  io.data(revoked, `Revoked ${id}.`)
}
