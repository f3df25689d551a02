// Workspaces: created and provisioned by the operator, read by their keys.
import { Slug, WorkspaceName } from '../contract/fields.ts'
import type { Db, Tx } from '../store/store.ts'
import {
  findWorkspaceBySlug,
  getWorkspace,
  insertWorkspace,
  listWorkspaces,
  provisionWorkspace,
  type WorkspaceRow,
} from '../store/workspaces.ts'
import { recordAct } from './audit.ts'
import { awaitEverywhere, tellOfChange } from './changes.ts'
import type { Actor, Context, World } from './context.ts'
import { Fault } from './fault.ts'
import { isoOf } from './instants.ts'
import { type Checker, checker } from './invalid.ts'
import { SLICE_ROWS, slicesOf } from './pages.ts'

const checkSlug: Checker<string> = checker(Slug, 'slug')
const checkName: Checker<string> = checker(WorkspaceName, 'name')

export async function readWorkspace(ctx: Context): Promise<WorkspaceView> {
  return describeWorkspace(ctx, await getWorkspace(ctx.store.db, ctx.workspaceId))
}

export const describeWorkspace = (world: World, row: WorkspaceRow) => ({
  slug: row.slug,
  name: row.name,
  provisioned: row.provisioned_at !== null,
  tunnelBase: `${row.slug}.${world.tunnelDomain}`,
  exampleUrl: `my-app.${row.slug}.${world.tunnelDomain}`,
  createdAt: isoOf(row.created_at),
})

/** For those who describe the same rows over and over. */
export function workspaceDescriber(world: World): (row: WorkspaceRow) => WorkspaceView {
  const views = new WeakMap<WorkspaceRow, WorkspaceView>()
  return (row) => {
    const known = views.get(row)
    if (known) return known
    const view = describeWorkspace(world, row)
    views.set(row, view)
    return view
  }
}

export type { WorkspaceRow }

export type WorkspaceView = ReturnType<typeof describeWorkspace>

export interface NewWorkspace {
  slug: string
  name?: string | undefined
  provisioned?: boolean | undefined
}

/** Returns the row, so that the caller can go on acting in the new workspace. */
export const createWorkspace = (world: World, actor: Actor, given: NewWorkspace): Promise<WorkspaceRow> =>
  world.store.transaction((db) => addWorkspace(db, world, actor, given))

/** The same, as a part of somebody's transaction. */
export async function addWorkspace(
  db: Tx,
  world: World,
  actor: Actor,
  { slug, name = slug, provisioned = false }: NewWorkspace,
): Promise<WorkspaceRow> {
  checkSlug(slug)
  checkName(name)
  const now = world.clock()
  const row = { id: world.ids('ws'), slug, name, created_at: now, provisioned_at: provisioned ? now : null }
  if (!(await insertWorkspace(db, row)))
    throw new Fault('invalid_request', { message: `There is a workspace "${slug}" already.` })
  await recordAct(db, world, { workspaceId: row.id, actor, action: 'workspace.created', subjectId: row.id })
  return row
}

export const workspaceSlices = (db: Db) =>
  slicesOf<WorkspaceRow>((last) => listWorkspaces(db, { after: last?.slug, limit: SLICE_ROWS }))

/** In slices. */
export async function* listAll(world: World) {
  for await (const rows of workspaceSlices(world.store.db))
    yield rows.map((row) => describeWorkspace(world, row))
}

export async function getBySlug(world: World, slug: string): Promise<WorkspaceRow> {
  const row = await findWorkspaceBySlug(world.store.db, slug)
  if (row) return row
  throw new Fault('not_found', {
    message: `There is no workspace "${slug}". "adit admin workspace list" shows which there are.`,
  })
}

/** Provisioning twice is no mistake: the second time changes nothing. */
export async function provision(world: World, actor: Actor, slug: string): Promise<WorkspaceRow> {
  const { id } = await getBySlug(world, slug)
  const place = await world.store.transaction(async (db) => {
    if (!(await provisionWorkspace(db, id, world.clock()))) return undefined
    await recordAct(db, world, { workspaceId: id, actor, action: 'workspace.provisioned', subjectId: id })
    return tellOfChange(db, world, { kind: 'workspace', subjectId: id })
  })
  await awaitEverywhere(world, place)
  return getBySlug(world, slug)
}
