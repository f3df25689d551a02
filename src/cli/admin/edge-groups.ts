import { createGroup, listGroups } from '../../server/domain/cluster/groups.ts'
import type { Io } from '../io.ts'
import { withServices } from './with-services.ts'

export async function create(name: string, io: Io): Promise<void> {
  const group = await withServices((services, actor) => createGroup(services, actor, name))
  io.data(group, `Created the group "${name}".`)
}

export async function list(io: Io): Promise<void> {
  await io.list([await withServices(listGroups)], {
    columns: {
      NAME: ({ name }) => name,
      EDGES: ({ edges }) => String(edges),
      WORKSPACES: ({ workspaces }) => String(workspaces),
    },
    empty: 'No groups.',
    shrink: ['NAME'],
  })
}
