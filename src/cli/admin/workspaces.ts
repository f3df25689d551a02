import {
  createWorkspace,
  describeWorkspace,
  listAll,
  provision as provisionIn,
} from '../../domain/workspaces.ts'
import type { Io } from '../io.ts'
import { withServices } from './with-services.ts'

export async function create(
  given: { slug: string; name: string | undefined; provisioned: boolean },
  io: Io,
): Promise<void> {
  const made = await withServices(io, async (services, actor) =>
    describeWorkspace(services, await createWorkspace(services, actor, given)),
  )
  io.data(
    made,
    `Created the workspace "${made.slug}" (${made.name}); its tunnels live under ${made.tunnelBase}.`,
  )
  io.info(`Mint a key for it: adit admin key create --workspace ${made.slug}`)
}

export async function list(io: Io): Promise<void> {
  await withServices(io, (services) =>
    io.list(listAll(services), {
      SLUG: (one) => one.slug,
      NAME: (one) => one.name,
      PROVISIONED: (one) => (one.provisioned ? 'yes' : 'no'),
      CREATED: (one) => one.createdAt,
      'TUNNELS UNDER': (one) => one.tunnelBase,
    }),
  )
}

export async function provision(slug: string, io: Io): Promise<void> {
  const found = await withServices(io, async (services, actor) =>
    describeWorkspace(services, await provisionIn(services, actor, slug)),
  )
  io.data(found, `The workspace "${slug}" is provisioned.`)
}
