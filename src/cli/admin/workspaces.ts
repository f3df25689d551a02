import {
  createWorkspace,
  describeWorkspace,
  listAll,
  provision as provisionIn,
} from '../../domain/workspaces.ts'
import type { Io } from '../io.ts'
import { withWorld } from './with-world.ts'

export async function create(
  given: { slug: string; name: string | undefined; provisioned: boolean },
  io: Io,
): Promise<void> {
  const made = await withWorld(io, async (world, actor) =>
    describeWorkspace(world, await createWorkspace(world, actor, given)),
  )
  io.data(
    made,
    `Created the workspace "${made.slug}" (${made.name}); its tunnels live under ${made.tunnelBase}.`,
  )
  io.say(`Mint a key for it: adit admin key create --workspace ${made.slug}`)
}

export async function list(io: Io): Promise<void> {
  await withWorld(io, (world) =>
    io.list(listAll(world), {
      SLUG: (one) => one.slug,
      NAME: (one) => one.name,
      PROVISIONED: (one) => (one.provisioned ? 'yes' : 'no'),
      CREATED: (one) => one.createdAt,
      'TUNNELS UNDER': (one) => one.tunnelBase,
    }),
  )
}

export async function provision(slug: string, io: Io): Promise<void> {
  const found = await withWorld(io, async (world, actor) =>
    describeWorkspace(world, await provisionIn(world, actor, slug)),
  )
  io.data(found, `The workspace "${slug}" is provisioned.`)
}
