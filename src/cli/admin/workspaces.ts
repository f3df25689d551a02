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
  const made = await withServices(async (services, actor) =>
    describeWorkspace(services, await createWorkspace(services, actor, given)),
  )
  const { slug, name, tunnelBase, provisioned } = made
  io.data(made, `Created workspace "${slug}" (${name}); tunnel domain ${tunnelBase}.`)
  const rejected = provisioned ? '' : ', and edges reject its tunnels until it is provisioned'
  io.info(
    [
      `It has no API key and no owner yet${rejected}. Next:`,
      `  adit admin key create --workspace ${slug}`,
      `  adit admin user create you@example.com --workspace ${slug} --role owner`,
      ...(provisioned ? [] : [`  adit admin workspace provision ${slug}`]),
    ].join('\n'),
  )
}

export async function list(io: Io): Promise<void> {
  await withServices((services) =>
    io.list(listAll(services), {
      columns: {
        SLUG: (one) => one.slug,
        NAME: (one) => one.name,
        PROVISIONED: (one) => (one.provisioned ? 'yes' : 'no'),
        CREATED: (one) => io.time(one.createdAt),
        'TUNNEL DOMAIN': (one) => one.tunnelBase,
      },
      empty: 'No workspaces. Create one with `adit admin workspace create default --provisioned`.',
      shrink: ['NAME', 'TUNNEL DOMAIN'],
    }),
  )
}

export async function provision(slug: string, io: Io): Promise<void> {
  const found = await withServices(async (services, actor) =>
    describeWorkspace(services, await provisionIn(services, actor, slug)),
  )
  io.data(found, `Workspace "${slug}" is provisioned: edges open its tunnels.`)
}
