import { RESTORABLE_DAYS } from '../../lib/credentials/archive.ts'
import { setWorkspaceGroup } from '../../server/domain/cluster/groups.ts'
import { archiveAsOperator, restore as restoreIn } from '../../server/domain/workspaces/archive.ts'
import {
  createWorkspace,
  describeWorkspace,
  getBySlug,
  listAll,
  provision as provisionIn,
} from '../../server/domain/workspaces/manage.ts'
import type { Io } from '../io.ts'
import { confirm, withServices } from './with-services.ts'

export async function create(
  input: { slug: string; name: string | undefined; provisioned: boolean },
  io: Io,
): Promise<void> {
  const workspace = await withServices(async (services, actor) =>
    describeWorkspace(services, await createWorkspace(services, actor, input)),
  )
  const { slug, name, tunnelBase, provisioned } = workspace
  io.data(workspace, `Created workspace "${slug}" (${name}); tunnel domain ${tunnelBase}.`)
  const rejected = provisioned ? '' : ', and edges reject its tunnels until it is provisioned'
  io.info(
    [
      `It has no API key and no owner yet${rejected}. Next:`,
      `  adit admin key create --workspace ${slug}`,
      `  adit admin user invite you@example.com --workspace ${slug} --role owner`,
      ...(provisioned ? [] : [`  adit admin workspace provision ${slug}`]),
    ].join('\n'),
  )
}

export async function list(io: Io): Promise<void> {
  await withServices((services) =>
    io.list(listAll(services), {
      columns: {
        SLUG: ({ slug }) => slug,
        NAME: ({ name }) => name,
        PROVISIONED: ({ provisioned }) => (provisioned ? 'yes' : 'no'),
        ARCHIVED: ({ archivedAt }) => (archivedAt === null ? '' : io.time(archivedAt)),
        CREATED: ({ createdAt }) => io.time(createdAt),
        'EDGE GROUP': ({ group }) => group,
        'TUNNEL DOMAIN': ({ tunnelBase }) => tunnelBase,
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

export async function setGroup({ slug, group }: { slug: string; group: string }, io: Io): Promise<void> {
  const changed = await withServices((services, actor) => setWorkspaceGroup(services, actor, slug, group))
  io.data(changed, `Only edges of the group "${group}" carry tunnels of workspace "${slug}".`)
}

export async function archive({ slug, yes }: { slug: string; yes: boolean }, io: Io): Promise<void> {
  const archived = await withServices(async (services, actor) => {
    await getBySlug(services, slug)
    const effect = `The API keys of workspace "${slug}" stop working, and its tunnels are closed.`
    await confirm(io, `${effect} It can be restored within ${RESTORABLE_DAYS} days.`, yes)
    return archiveAsOperator(services, actor, slug)
  })
  io.data(
    { slug, ...archived },
    `Archived workspace "${slug}". Restore it until ${archived.restorableUntil} with \`adit admin workspace restore ${slug}\`.`,
  )
}

export async function restore(slug: string, io: Io): Promise<void> {
  const restored = await withServices(async (services, actor) =>
    describeWorkspace(services, await restoreIn(services, actor, slug)),
  )
  io.data(restored, `Restored workspace "${slug}": its API keys work again.`)
}
