// A signed-in user decides whether an agent gets a key, on the page /authorize. The result is the URL that
// the browser goes to, with a code or an error. It always has `iss` (RFC 9207): an agent of several servers
// can detect a mix-up attack by it.
import { listMemberships } from '../../store/accounts/members.ts'
import { lacksTwoFactor } from '../../store/accounts/two-factors.ts'
import type { PolicyColumns } from '../../store/workspaces.ts'
import { reauthorize, requireSession } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context, Services, UserActor } from '../context.ts'
import { Fault } from '../fault.ts'
import { keyObstacle, requireMayCreateKey } from '../keys/rights.ts'
import { readPolicy } from '../workspaces/policy.ts'
import { createCode } from './codes.ts'
import { describeTarget, isLoopback, withParameters } from './redirect-uris.ts'
import { type AgentSignIn, type AuthorizationRequest, invalidRequest, readRequest } from './requests.ts'

/** What the user sees before a decision. `problem`: why the request cannot be approved. */
export async function readAgent(services: Services, signIn: AgentSignIn, userId: string, query: string) {
  const { client, redirectUri, error } = await readRequest(signIn, query)
  return {
    name: client.name,
    host: client.host,
    target: describeTarget(redirectUri),
    isLocal: isLoopback(redirectUri),
    problem: error?.description ?? null,
    workspaces: await listChoices(services, userId),
  }
}

async function listChoices(services: Services, userId: string) {
  const { db } = services.store
  const withoutTwoFactor = await lacksTwoFactor(db, userId)
  const rows = await listMemberships(db, userId)
  return rows
    .filter(({ archived_at }) => archived_at === null)
    .map((row) => ({
      slug: row.slug,
      name: row.name,
      obstacle: keyObstacle(services, row, { userId, withoutTwoFactor }),
      mayManageKeys: mayManageKeys(services, row),
    }))
}

/** Whether the policy of the workspace lets API keys, and so agents, manage API keys. */
const mayManageKeys = ({ variant }: Services, workspace: PolicyColumns): boolean =>
  variant === 'A' && readPolicy(workspace, variant).keysManageKeys

interface Approval {
  /** The query string of the authorization request. */
  request: string
  managesKeys: boolean
}

export async function approveAgent(
  ctx: Context & { actor: UserActor },
  signIn: AgentSignIn,
  { request: query, managesKeys }: Approval,
) {
  const request = await readRequest(signIn, query)
  if (request.error) throw invalidRequest(request.error.description)
  const { workspaceId, actor } = ctx
  const code = await ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx)
    requireMayCreateKey(ctx, workspace, actor.id)
    if (managesKeys && !mayManageKeys(ctx, workspace))
      throw new Fault('forbidden', {
        message: 'API keys and agents may not manage API keys in this workspace.',
      })
    const keyId = ctx.ids('tok')
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: 'agent.approved',
      ...auditEntry(request, keyId),
    })
    return createCode(ctx, signIn, { request, keyId, managesKeys })
  })
  return { redirectTo: redirect(signIn, request, { code }) }
}

interface Denial {
  request: string
  /** The slug of the workspace that the user had selected. */
  workspace?: string | undefined
}

/** If the workspace does not let the user approve, its obstacle is the error that the agent gets. */
export async function denyAgent(
  services: Services,
  signIn: AgentSignIn,
  actor: UserActor,
  { request: query, workspace: slug }: Denial,
) {
  const request = await readRequest(signIn, query)
  const workspace = (await listChoices(services, actor.id)).find((each) => each.slug === slug)
  await services.store.transaction(async (db) => {
    await requireSession(db, services, actor)
    // The entry belongs to no workspace: none was approved.
    const entry = auditEntry(request, describeTarget(request.redirectUri))
    await writeAudit(db, services, { workspaceId: null, actor, action: 'agent.denied', ...entry })
  })
  const denied = {
    error: 'access_denied',
    description: workspace?.obstacle ?? 'The user denied the request.',
  }
  const { error, description } = request.error ?? denied
  return { redirectTo: redirect(signIn, request, { error, error_description: description }) }
}

const auditEntry = ({ client, redirectUri }: AuthorizationRequest, id: string) => ({
  target: { id, name: client.name },
  changes: changesBetween(null, { host: client.host, target: describeTarget(redirectUri) }),
})

const redirect = (
  { publicUrl }: AgentSignIn,
  { redirectUri, state }: AuthorizationRequest,
  parameters: Record<string, string>,
) => withParameters(redirectUri, { ...parameters, ...(state !== undefined && { state }), iss: publicUrl() })
