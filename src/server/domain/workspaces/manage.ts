// Workspaces: the operator creates and provisions them, and API keys read them.

import type { UsageQuota } from '../../../contract/edge/quotas.ts'
import { Slug, WorkspaceName } from '../../../contract/fields.ts'
import type { Tx } from '../../store/engine/store.ts'
import {
  findWorkspaceBySlug,
  getWorkspace,
  insertWorkspace,
  listWorkspaces,
  lockWorkspace,
  provisionWorkspace,
  type WorkspaceRow,
} from '../../store/workspaces.ts'
import { awaitPropagation, publishChange } from '../../verification/propagation.ts'
import { requireNotArchived } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Caller, Context, Services } from '../context.ts'
import { recordUpdate } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { describeForEdges, NO_QUOTA_OVERRIDES } from '../quotas/limits.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { type Checker, checker } from '../validation.ts'
import { type Policy, readPolicy } from './policy.ts'

/** The group of new workspaces, and of edges that are created without one. */
export const DEFAULT_EDGE_GROUP = 'default'

const checkSlug: Checker<string> = checker(Slug, 'slug')
const checkName: Checker<string> = checker(WorkspaceName, 'name')

export async function readWorkspace(
  ctx: Context,
): Promise<ReturnType<typeof describeWorkspace> & { policy: Policy }> {
  const row = await getWorkspace(ctx.store.db, ctx.workspaceId)
  return { ...describeWorkspace(ctx, row), policy: readPolicy(row, ctx.variant) }
}

export const describeWorkspace = (services: Services, row: WorkspaceRow) => ({
  slug: row.slug,
  name: row.name,
  provisioned: row.provisioned_at !== null,
  tunnelBase: `${row.slug}.${services.tunnelDomain}`,
  // A host name. The API specification fixes the name of the field.
  exampleUrl: `my-app.${row.slug}.${services.tunnelDomain}`,
  createdAt: toIso(row.created_at),
})

/** Describes workspaces for edges. Caches the result for each row object, because requests wait for it. */
export function workspaceDescriber(
  services: Services,
  getTopic: (workspaceId: string) => string,
): (row: WorkspaceRow) => WorkspaceView {
  const views = new WeakMap<WorkspaceRow, WorkspaceView>()
  return (row) => {
    const cached = views.get(row)
    if (cached) return cached
    const quota = describeForEdges(services.limits.quotas, row)
    const view = { ...describeWorkspace(services, row), topic: getTopic(row.id), ...(quota && { quota }) }
    views.set(row, view)
    return view
  }
}

export type { WorkspaceRow }

export type WorkspaceView = ReturnType<typeof describeWorkspace> & { topic: string; quota?: UsageQuota }

interface NewWorkspace {
  slug: string
  name?: string | undefined
  provisioned?: boolean | undefined
}

export const createWorkspace = (
  services: Services,
  actor: Caller,
  workspace: NewWorkspace,
): Promise<WorkspaceRow> => services.store.transaction((db) => addWorkspace(db, services, actor, workspace))

/** Runs in the caller's transaction. */
export async function addWorkspace(
  db: Tx,
  services: Services,
  actor: Caller,
  { slug, name = slug, provisioned = false }: NewWorkspace,
): Promise<WorkspaceRow> {
  checkSlug(slug)
  checkName(name)
  const now = services.clock()
  const row = {
    id: services.ids('ws'),
    slug,
    name,
    created_at: now,
    provisioned_at: provisioned ? now : null,
    key_days_max: null,
    keys_read_only_at: null,
    key_creator_role: null,
    two_factor_required_at: null,
    archived_at: null,
    edge_group: DEFAULT_EDGE_GROUP,
    creator_id: actor.kind === 'user' ? actor.id : null,
    ...NO_QUOTA_OVERRIDES,
  }
  if (!(await insertWorkspace(db, row)))
    throw new Fault('conflict', { message: `Workspace "${slug}" already exists.` })
  await writeAudit(db, services, {
    workspaceId: row.id,
    actor,
    action: 'workspace.created',
    target: { id: row.id, name },
    changes: changesBetween(null, { slug, name, provisioned }),
  })
  return row
}

/** Yields slices of all workspaces, for the operator. */
export async function* listAll(services: Services) {
  const slices = readSlices<WorkspaceRow>((last) =>
    listWorkspaces(services.store.db, { after: last?.slug, limit: SLICE_ROWS }),
  )
  for await (const rows of slices)
    yield rows.map((row) => ({
      ...describeWorkspace(services, row),
      archivedAt: isoOrNull(row.archived_at),
      group: row.edge_group,
    }))
}

export async function getBySlug(services: Services, slug: string): Promise<WorkspaceRow> {
  const row = await findWorkspaceBySlug(services.store.db, slug)
  if (row) return row
  throw new Fault('not_found', {
    message: `There is no workspace "${slug}". Run \`adit admin workspace list\` to see all workspaces.`,
  })
}

/** Idempotent. */
export async function provision(services: Services, actor: Caller, slug: string): Promise<WorkspaceRow> {
  const { id, name } = await getBySlug(services, slug)
  const position = await services.store.transaction(async (db) => {
    requireNotArchived(await lockWorkspace(db, id), actor)
    if (!(await provisionWorkspace(db, id, services.clock()))) return undefined
    await writeAudit(db, services, {
      workspaceId: id,
      actor,
      action: 'workspace.provisioned',
      target: { id, name },
    })
    await recordUpdate(db, services, { workspaceId: id, actor, changes: { provisioned: [false, true] } })
    return publishChange(db, services, { kind: 'workspace', subjectId: id })
  })
  await awaitPropagation(services, position)
  return getBySlug(services, slug)
}
