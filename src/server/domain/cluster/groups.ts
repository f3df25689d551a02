// Groups of edges. The edges of a group trust each other with the traffic of its workspaces; to an edge,
// keys, names and usage of workspaces of other groups do not exist.
import { EdgeGroupName } from '../../../contract/fields.ts'
import * as groups from '../../store/cluster/groups.ts'
import type { Db } from '../../store/engine/store.ts'
import { getWorkspace, lockWorkspace } from '../../store/workspaces.ts'
import { awaitPropagation, publishChange } from '../../verification/propagation.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Actor, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { type Checker, checker } from '../validation.ts'
import { getBySlug } from '../workspaces/manage.ts'

const checkName: Checker<string> = checker(EdgeGroupName, 'name')

export async function createGroup(services: Services, actor: Actor, name: string) {
  checkName(name)
  await services.store.transaction(async (tx) => {
    if (!(await groups.insertGroup(tx, name)))
      throw new Fault('conflict', { message: `The group "${name}" already exists.` })
    const target = { id: name, name }
    await writeAudit(tx, services, { workspaceId: null, actor, action: 'edge-group.created', target })
  })
  return { name }
}

export async function listGroups({ store }: Services) {
  const rows = await groups.listGroups(store.db)
  return rows.map(({ name, edges, workspaces }) => ({
    name,
    edges: Number(edges),
    workspaces: Number(workspaces),
  }))
}

export async function requireGroup(db: Db, name: string): Promise<void> {
  if (await groups.hasGroup(db, name)) return
  throw new Fault('not_found', {
    message: `There is no group "${name}". Create it with \`adit admin edge-group create ${name}\`.`,
  })
}

/**
 * A claim that is decided at the same time is committed before the check, which then finds its tunnel, or
 * locks the group after this transaction, and finds that the workspace has left it.
 */
export async function setWorkspaceGroup(services: Services, actor: Actor, slug: string, group: string) {
  const { id, name } = await getBySlug(services, slug)
  const position = await services.store.transaction(async (tx) => {
    await requireGroup(tx, group)
    await lockWorkspace(tx, id)
    const { edge_group: before } = await getWorkspace(tx, id)
    if (before === group) return undefined
    await groups.lockGroups(tx, [before, group])
    if (await groups.hasStoredTunnels(tx, id))
      throw new Fault('conflict', {
        message:
          `Workspace "${slug}" has open tunnels. Close them first. Tunnels of an edge that is gone are ` +
          'removed within the hour.',
      })
    await groups.setWorkspaceGroup(tx, id, group)
    await writeAudit(tx, services, {
      workspaceId: id,
      actor,
      action: 'workspace.group-changed',
      target: { id, name },
      changes: changesBetween({ group: before }, { group }),
    })
    return publishChange(tx, services, { kind: 'workspace-group', subjectId: id })
  })
  await awaitPropagation(services, position)
  return { slug, group }
}
