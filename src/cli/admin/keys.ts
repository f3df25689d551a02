import { createKey, listAllKeys, revokeAsOperator } from '../../domain/keys.ts'
import { findWorkspaceOfLastKey } from '../../domain/last-access.ts'
import { getBySlug } from '../../domain/workspaces.ts'
import type { Io } from '../io.ts'
import { printState } from '../key-state.ts'
import { confirm, withServices } from './with-services.ts'

export async function create(given: { workspace: string; label: string | undefined }, io: Io): Promise<void> {
  const key = await withServices(async (services, actor) => {
    const { id: workspaceId } = await getBySlug(services, given.workspace)
    return createKey({ ...services, actor, workspaceId }, given.label)
  })
  io.info(
    `Created API key ${key.id} for workspace "${given.workspace}". Store it in your secret manager; ` +
      'it is not shown again.',
  )
  io.data(key, key.token)
}

export async function list(workspace: string | undefined, io: Io): Promise<void> {
  await withServices((services) =>
    io.list(listAllKeys(services, workspace), {
      columns: {
        ID: (key) => key.id,
        WORKSPACE: (key) => key.workspace,
        LABEL: (key) => key.label,
        CREATED: (key) => io.time(key.createdAt),
        'LAST USED': (key) => io.time(key.lastUsedAt),
        STATE: (key) => printState(key, io),
      },
      empty: 'No API keys.',
      shrink: ['LABEL', 'WORKSPACE', 'STATE', 'CREATED', 'LAST USED'],
    }),
  )
}

export async function revoke({ id, yes }: { id: string; yes: boolean }, io: Io): Promise<void> {
  const revoked = await withServices(async (services, actor) => {
    const workspace = await findWorkspaceOfLastKey(services, id)
    if (workspace !== undefined)
      await confirm(io, `${id} is the last active API key of workspace "${workspace}".`, yes)
    return revokeAsOperator(services, actor, id)
  })
  io.data(revoked, `Revoked ${id}.`)
}
