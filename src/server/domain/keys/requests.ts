// Requests for an API key (variant B). A member requests a key, and an admin or owner approves. The key is
// created when the member picks it up, so that nobody else sees it, if the approver may still create keys.
import { withoutLinks } from '../../../contract/text.ts'
import { DAY_MS, HOUR_MS } from '../../../lib/time.ts'
import { shareRole } from '../../store/accounts/members.ts'
import { findUser } from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import {
  countRequestsSince,
  findOpenRequest,
  insertRequest,
  listPendingRequests,
  listRequestsBy,
  lockRequest,
  type RequestRow,
  updateRequest,
} from '../../store/keys/requests.ts'
import { type AuthorizedWorkspace, reauthorize } from '../actors.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context, MemberContext, UserActor } from '../context.ts'
import { Fault } from '../fault.ts'
import { createAlert } from '../notices/alerts.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { addKey, type CreatedKey, checkLabel, draftKey } from './lifecycle.ts'
import { keyRights } from './rights.ts'

/** How long a request can be approved, and then picked up. */
const PENDING_DAYS = 7
const APPROVED_HOURS = 24
/** Limit per user and workspace: each request may send emails to the admins and owners. */
export const REQUESTS_PER_DAY = 5
const LISTED_MAX = 100

type UserContext = Context & { actor: UserActor }

type RequestState = RequestRow['state'] | 'expired'

export const stateAt = (
  { state, expires_at }: Pick<RequestRow, 'state' | 'expires_at'>,
  now: number,
): RequestState => ((state === 'pending' || state === 'approved') && expires_at <= now ? 'expired' : state)

export const requestKey = (ctx: UserContext, label = '') =>
  ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx)
    if (await findOpenRequest(db, ctx.workspaceId, ctx.actor.id, ctx.clock()))
      throw new Fault('conflict', {
        message: 'You have an open request. Pick up its key, or withdraw it first.',
      })
    const { id } = await addRequest(db, ctx, workspace, label)
    return { id }
  })

/** The caller has locked the workspace, so that concurrent requests cannot exceed the limit. */
export async function addRequest(
  db: Tx,
  ctx: UserContext,
  workspace: AuthorizedWorkspace,
  label: string,
): Promise<RequestRow> {
  const { workspaceId, actor } = ctx
  requireMayRequest(ctx, workspace)
  checkLabel(label)
  const now = ctx.clock()
  if ((await countRequestsSince(db, workspaceId, actor.id, now - DAY_MS)) >= REQUESTS_PER_DAY)
    throw new Fault('conflict', {
      message: `You have requested ${REQUESTS_PER_DAY} API keys within a day, which is the limit. Try again tomorrow.`,
    })
  const row: RequestRow = {
    id: ctx.ids('req'),
    workspace_id: workspaceId,
    user_id: actor.id,
    label,
    created_at: now,
    expires_at: now + PENDING_DAYS * DAY_MS,
    state: 'pending',
    decided_by: null,
    decided_at: null,
  }
  await insertRequest(db, row)
  await writeAudit(db, ctx, {
    workspaceId,
    actor,
    action: 'key.requested',
    target: { id: row.id, name: label },
  })
  await createAlert(db, ctx, {
    kind: 'key-request',
    workspaceId,
    subjectId: row.id,
    dedupKey: '',
    title: 'has a request for an API key',
    text: `${withoutLinks(actor.name)} requests an API key. Approve or decline it within ${PENDING_DAYS} days:`,
    page: 'keys',
  })
  return row
}

function requireMayRequest(ctx: UserContext, workspace: AuthorizedWorkspace): void {
  if (keyRights(ctx, workspace, ctx.actor).creates !== 'none')
    throw new Fault('conflict', { message: 'You can create API keys yourself.' })
  if (ctx.variant === 'A')
    throw new Fault('conflict', {
      message: 'This server does not support requests for API keys. Ask an admin or owner of the workspace.',
    })
}

/** Lists the user's own requests, and for admins and owners also the pending ones of other members. */
export async function listRequests(ctx: MemberContext) {
  const { store, workspaceId, actor, clock } = ctx
  const now = clock()
  const ownRequests = await listRequestsBy(store.db, workspaceId, actor.id, LISTED_MAX)
  const pending =
    ctx.role === 'member' ? [] : await listPendingRequests(store.db, workspaceId, now, LISTED_MAX)
  const others = pending.filter(({ user_id }) => user_id !== actor.id)
  return {
    requests: [...ownRequests, ...others].map((row) => ({
      id: row.id,
      label: row.label,
      user: { name: row.name, email: row.email, isYou: row.user_id === actor.id },
      state: stateAt(row, now),
      createdAt: toIso(row.created_at),
      expiresAt: toIso(row.expires_at),
      decidedBy: row.deciderName,
      decidedAt: isoOrNull(row.decided_at),
    })),
  }
}

const decisions = { approved: 'key.request-approved', declined: 'key.request-declined' } as const

export async function decideRequest(ctx: MemberContext, id: string, decision: keyof typeof decisions) {
  const { workspaceId, actor } = ctx
  await ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx)
    const row = await lockRequest(db, workspaceId, id)
    if (!row) throw new Fault('not_found')
    requireMayApprove(ctx, workspace)
    const now = ctx.clock()
    requireState(row, 'pending', now)
    const expires_at = decision === 'approved' ? now + APPROVED_HOURS * HOUR_MS : row.expires_at
    await updateRequest(db, id, { state: decision, decided_by: actor.id, decided_at: now, expires_at })
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: decisions[decision],
      target: { id, name: row.label },
    })
    await createAlert(db, ctx, {
      kind: 'key-request-decided',
      workspaceId,
      subjectId: id,
      dedupKey: '',
      recipientId: row.user_id,
      title: `has ${decision} your request for an API key`,
      text:
        decision === 'approved'
          ? `Run \`adit login\` again within ${APPROVED_HOURS} hours, or create the key in the dashboard:`
          : 'Ask an admin or owner of the workspace for the reason. Your requests are in the dashboard:',
      page: 'keys',
    })
  })
  return { id, state: decision }
}

const requireMayApprove = (ctx: Context, workspace: AuthorizedWorkspace) => {
  if (keyRights(ctx, workspace, ctx.actor).creates === 'all') return
  throw new Fault('forbidden', { message: 'The policy of this workspace lets only owners approve requests.' })
}

function requireState(row: RequestRow, needed: 'pending' | 'approved', now: number): void {
  const state = stateAt(row, now)
  if (state === needed) return
  throw new Fault('conflict', { message: stateMessages[state] })
}

/** Why a request cannot be decided, withdrawn or picked up. */
const stateMessages: Record<RequestState, string> = {
  pending: 'The request is not approved yet.',
  approved: 'The request is already approved.',
  declined: 'The request was declined. Ask an admin or owner of the workspace for the reason.',
  withdrawn: 'The request was withdrawn.',
  used: 'The key of this request was already created.',
  expired: 'The request has expired. Send a new one.',
}

/** Another user's request looks like one that does not exist. */
async function lockOwnRequest(db: Tx, ctx: UserContext, id: string): Promise<RequestRow> {
  const row = await lockRequest(db, ctx.workspaceId, id)
  if (row?.user_id !== ctx.actor.id) throw new Fault('not_found')
  return row
}

export async function withdrawRequest(ctx: MemberContext, id: string) {
  const { workspaceId, actor } = ctx
  await ctx.store.transaction(async (db) => {
    await reauthorize(db, ctx)
    const row = await lockOwnRequest(db, ctx, id)
    if (stateAt(row, ctx.clock()) !== 'approved') requireState(row, 'pending', ctx.clock())
    await updateRequest(db, id, { state: 'withdrawn' })
    const target = { id, name: row.label }
    await writeAudit(db, ctx, { workspaceId, actor, action: 'key.request-withdrawn', target })
  })
  return { id, withdrawn: true as const }
}

export const pickUpKey = (ctx: MemberContext, id: string): Promise<CreatedKey> =>
  ctx.store.transaction(async (db) => createRequestedKey(db, ctx, await reauthorize(db, ctx), { id }))

interface PickUpInput {
  id: string
  expiresAt?: string | undefined
}

/** Creates the key of an approved request. The caller has authorized the member who picks it up. */
export async function createRequestedKey(
  db: Tx,
  ctx: UserContext,
  workspace: AuthorizedWorkspace,
  { id, expiresAt }: PickUpInput,
): Promise<CreatedKey & { approvedBy: string }> {
  const row = await lockOwnRequest(db, ctx, id)
  requireState(row, 'approved', ctx.clock())
  const approver = await requireApprover(db, ctx, workspace, row.decided_by as string)
  const draft = draftKey(ctx, workspace, { label: row.label, expiresAt, userId: ctx.actor.id })
  const approvedBy = approver.name
  const created = await addKey(db, ctx, workspace, draft, { approvedBy })
  // Last: a device commits the failure of a key that was not created, and the request stays approved.
  await updateRequest(db, id, { state: 'used' })
  return { ...created, approvedBy }
}

/** Returns the user who approved a request. Throws if they may no longer create keys. */
async function requireApprover(db: Tx, ctx: Context, workspace: AuthorizedWorkspace, userId: string) {
  const role = await shareRole(db, workspace.id, userId)
  const approver = await findUser(db, userId)
  const actor = { kind: 'user', id: userId, name: approver?.name ?? '' } as const
  if (approver && keyRights(ctx, { ...workspace, role }, actor).creates === 'all') return approver
  throw new Fault('conflict', {
    message:
      'The user who approved this request may no longer create API keys. Withdraw it, and send a new one.',
  })
}
