// Creating a workspace, and renaming it.

import { insertMember } from '../../store/accounts/members.ts'
import { lockUser } from '../../store/accounts/users.ts'
import { countWorkspacesCreatedBy, renameWorkspace } from '../../store/workspaces.ts'
import { awaitPropagation, publishChange } from '../../verification/propagation.ts'
import { reauthorize, requireSession } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { MemberContext, Services, UserActor } from '../context.ts'
import { recordUpdate } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { addWorkspace } from './manage.ts'

/** Archived workspaces count too, so that archiving does not make room for others. */
const CREATED_MAX = 10

/** Names that an operator may use under the tunnel domain, and that visitors would trust. */
const OPERATOR_SLUGS: ReadonlySet<string> = new Set(
  'account adit admin api app auth billing console dashboard docs edge help login mail status support www'.split(
    ' ',
  ),
)

/** Browsers show such names as other characters, which may look like another workspace or a brand. */
const PUNYCODE = 'xn--'

/** Creates a workspace for a user, who becomes its owner. */
export async function createAsUser(
  services: Services,
  actor: UserActor,
  workspace: { slug: string; name: string },
) {
  if (!services.usersCreateWorkspaces)
    throw new Fault('forbidden', { message: 'Only the operator of this server can create workspaces.' })
  if (OPERATOR_SLUGS.has(workspace.slug) || workspace.slug.startsWith(PUNYCODE))
    throw new Fault('conflict', {
      message: `The slug "${workspace.slug}" is reserved for the operator of this server. Choose another one.`,
    })
  return services.store.transaction(async (db) => {
    await requireSession(db, services, actor)
    // Serializes the creations of a user, so that the limit holds.
    await lockUser(db, actor.id)
    if ((await countWorkspacesCreatedBy(db, actor.id)) >= CREATED_MAX)
      throw new Fault('conflict', {
        message: `You have created ${CREATED_MAX} workspaces, which is the limit. Ask the operator for more.`,
      })
    const { id, slug, name } = await addWorkspace(db, services, actor, { ...workspace, provisioned: true })
    await insertMember(db, {
      workspace_id: id,
      user_id: actor.id,
      role: 'owner',
      created_at: services.clock(),
    })
    return { slug, name }
  })
}

export async function rename(ctx: MemberContext, name: string): Promise<{ name: string }> {
  const { workspaceId, actor } = ctx
  const position = await ctx.store.transaction(async (db) => {
    const before = await reauthorize(db, ctx)
    if (before.name === name) return undefined
    await renameWorkspace(db, workspaceId, name)
    const changes = changesBetween({ name: before.name }, { name })
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: 'workspace.renamed',
      target: { id: workspaceId, name },
      changes,
    })
    await recordUpdate(db, ctx, { workspaceId, actor, changes })
    return publishChange(db, ctx, { kind: 'workspace', subjectId: workspaceId })
  })
  await awaitPropagation(ctx, position)
  return { name }
}
