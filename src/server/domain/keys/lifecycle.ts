// API keys: create, list, revoke. The raw key is only in the response to its creation, which is stored
// encrypted for a while if the request has an Idempotency-Key.

import { Label } from '../../../contract/fields.ts'
import { KEYS_PER_PAGE_MAX } from '../../../contract/limits.ts'
import { createSecret, hashSecret, lastFour } from '../../../lib/credentials/secret.ts'
import { DAY_MS } from '../../../lib/time.ts'
import type { Db, Tx } from '../../store/engine/store.ts'
import { deleteResponsesBefore, storeResponse } from '../../store/keys/idempotency.ts'
import {
  countActiveKeys,
  findKeyById,
  insertKey,
  type KeyRow,
  listKeys,
  type RevokedKey,
  revokeKey,
} from '../../store/keys/rows.ts'
import { rowState } from '../../store/keys/state.ts'
import type { WorkspaceRules } from '../../store/workspaces.ts'
import { awaitPropagation, type KeyChange, publishChange } from '../../verification/propagation.ts'
import { type AuthorizedWorkspace, reauthorize } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { type AuditDetail, writeAudit, writeAuditEntries } from '../audit/entries.ts'
import type { Caller, Context, Services } from '../context.ts'
import { decrypt, deriveEncryptionKey, encrypt } from '../encryption.ts'
import { eventActor, recordEvent, recordEvents } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { readSlices, SLICE_ROWS, toPage } from '../pagination.ts'
import { alertQuotas, type QuotaUse } from '../quotas/alerts.ts'
import { effectiveQuotas } from '../quotas/limits.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { type Checker, checker } from '../validation.ts'
import { expiryByPolicy, overridesPolicy } from '../workspaces/policy.ts'
import { parseExpiry } from './expiry.ts'
import { actingUserId, requireMayCreateKey, requireMayRevokeKey } from './rights.ts'

export interface CreatedKey {
  id: string
  token: string
  label: string
  createdAt: string
  expiresAt: string | null
  /** The user whose personal key it is; null for a key of the workspace. */
  userId: string | null
}

export interface NewKey {
  /**
   * Whether a user creates a personal key, or one of the workspace. What a personal key creates is personal.
   */
  personal?: boolean | undefined
  label?: string | undefined
  /** A UTC timestamp; the key does not expire if it is undefined. */
  expiresAt?: string | undefined
  idempotency?: IdempotencyInput | undefined
}

/** The caller's Idempotency-Key and the raw API key that the request was sent with. */
interface IdempotencyInput {
  idempotencyKey: string
  apiKey: string
}

/** The expiry is compared as requested: the one that the policy sets depends on the time. */
interface StoredResponse {
  request: { label: string; expiresAt?: string | undefined }
  response: CreatedKey
}

/** How long a response is repeated; then the same Idempotency-Key creates another key. */
export const IDEMPOTENCY_MS = DAY_MS

export const checkLabel: Checker<string> = checker(Label, 'label')

export const createKey = (
  ctx: Context,
  { label = '', expiresAt, personal = false, idempotency }: NewKey = {},
): Promise<CreatedKey> =>
  ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx)
    const userId = personal || ctx.actor.kind === 'key' ? actingUserId(ctx.actor) : null
    const created = newKey(ctx, workspace, { label, expiresAt, userId })
    if (!idempotency) return addKey(db, ctx, workspace, created)
    const encryptionKey = deriveEncryptionKey(idempotency.idempotencyKey, idempotency.apiKey)
    const now = ctx.clock()
    await deleteResponsesBefore(db, ctx.workspaceId, now - IDEMPOTENCY_MS)
    const request = { label, expiresAt }
    const encrypted = encrypt(encryptionKey, { request, response: created }, ctx.random)
    const stored = await storeResponse(db, ctx.workspaceId, {
      id: encryptionKey.id,
      encrypted,
      createdAt: now,
    })
    return stored === encrypted
      ? addKey(db, ctx, workspace, created)
      : replayFirst(decrypt<StoredResponse>(encryptionKey, stored), request)
  })

/** Also called for a repeated request, so that the policy is checked before the raw key is returned again. */
export function newKey(ctx: Context, workspace: AuthorizedWorkspace, input: KeyInput): CreatedKey {
  requireMayCreateKey(ctx, workspace, input.userId)
  return draftKey(ctx, workspace, input)
}

interface KeyInput {
  label: string
  expiresAt?: string | undefined
  userId: string | null
  now?: number
}

/** Does not check whether the actor may create the key: the caller has done so. */
export function draftKey(
  ctx: Context,
  workspace: AuthorizedWorkspace,
  { label, expiresAt, userId, now = ctx.clock() }: KeyInput,
): CreatedKey {
  checkLabel(label)
  const requested = expiresAt === undefined ? null : parseExpiry(expiresAt, now)
  return {
    id: ctx.ids('tok'),
    token: createSecret('key', ctx.random),
    label,
    createdAt: toIso(now),
    expiresAt: isoOrNull(expiryByPolicy(workspace, ctx.actor, { createdAt: now, expiresAt: requested })),
    userId,
  }
}

/** The values of a key that continues no lineage. */
const NO_LINEAGE = { lineage_id: null, generation: 0 }

const creatorColumns = (actor: Caller): Pick<KeyRow, 'created_by_kind' | 'created_by'> => ({
  created_by_kind: actor.kind,
  created_by: actor.kind === 'user' ? actor.name : actor.id,
})

interface Origin {
  lineage?: Pick<KeyRow, 'lineage_id' | 'generation'>
  /** Name of the user who has approved the request for it. */
  approvedBy?: string
  /** The agent that has signed in with it. */
  agent?: { host: string; managesKeys: boolean }
}

/**
 * Inserts a key, optionally as the next of a lineage. The caller has locked the workspace exclusively, so
 * that concurrent creations on any node cannot exceed the limit.
 */
export async function addKey(
  db: Tx,
  ctx: Context,
  workspace: AuthorizedWorkspace,
  created: CreatedKey,
  { lineage = NO_LINEAGE, approvedBy, agent }: Origin = {},
): Promise<CreatedKey> {
  const { workspaceId, actor } = ctx
  const createdAt = Date.parse(created.createdAt)
  const expiresAt = created.expiresAt === null ? null : Date.parse(created.expiresAt)
  const quotaUse = await requireBelowQuota(db, ctx, workspace)
  if (created.userId !== null) await requireBelowPersonalLimit(db, workspaceId, created.userId)
  await insertKey(db, {
    id: created.id,
    workspace_id: workspaceId,
    user_id: created.userId,
    label: created.label,
    hash: hashSecret(created.token),
    created_at: createdAt,
    last_used_at: null,
    revoked_at: null,
    expires_at: expiresAt,
    ...creatorColumns(actor),
    ...lineage,
    lifetime: null,
    last_four: lastFour(created.token),
    agent_host: agent?.host ?? null,
    agent_access: agent ? (agent.managesKeys ? 'manage' : 'read') : null,
  })
  await writeAudit(db, ctx, {
    workspaceId,
    actor,
    action: 'key.created',
    target: { id: created.id },
    ...(overridesPolicy(workspace, { createdAt, expiresAt }) && { detail: 'forced' }),
    changes: changesBetween(null, {
      label: created.label,
      expiresAt: created.expiresAt,
      ...(created.userId !== null && { personal: true }),
      ...(approvedBy !== undefined && { approvedBy }),
      ...(agent && { agent: agent.host, managesKeys: agent.managesKeys }),
    }),
  })
  const { token: _, ...key } = created
  await recordEvent(db, ctx, { workspaceId, type: 'key.created', data: { key, actor: eventActor(actor) } })
  await alertQuotas(db, ctx, [quotaUse])
  return created
}

/** The key as it appears in events. */
export const keyInEvent = (row: Pick<KeyRow, 'id' | 'label' | 'created_at' | 'expires_at'>) => ({
  id: row.id,
  label: row.label,
  createdAt: toIso(row.created_at),
  expiresAt: isoOrNull(row.expires_at),
})

/** Returns the number of keys including the new one. */
async function requireBelowQuota(
  db: Tx,
  { workspaceId, limits }: Context,
  workspace: WorkspaceRules,
): Promise<QuotaUse> {
  const { keys } = effectiveQuotas(limits.quotas, workspace)
  const active = await countActiveKeys(db, workspaceId, keys)
  if (active < keys) return { workspaceId, kind: 'keys', used: active + 1, limit: keys }
  throw limitReached(
    `The workspace has ${keys} active API keys, which is the limit. Revoke keys that are no longer in use; ` +
      'the operator can raise the limit with `adit admin workspace quota`',
  )
}

/** Limit per user and workspace: these keys are revoked together when the user is removed or disabled. */
export const PERSONAL_KEYS_MAX = 100

async function requireBelowPersonalLimit(db: Tx, workspaceId: string, userId: string): Promise<void> {
  if ((await countActiveKeys(db, workspaceId, PERSONAL_KEYS_MAX, userId)) < PERSONAL_KEYS_MAX) return
  throw limitReached(
    `The user has ${PERSONAL_KEYS_MAX} active personal API keys in this workspace, which is the limit. ` +
      'Revoke keys that are no longer in use',
  )
}

const limitReached = (message: string) =>
  new Fault('invalid_request', { message: `${message}.`, details: [{ path: '', message }] })

/** The first response again, if the request is the same. */
function replayFirst(first: StoredResponse, { label, expiresAt }: StoredResponse['request']): CreatedKey {
  if (first.request.label === label && first.request.expiresAt === expiresAt) return first.response
  throw new Fault('idempotency_mismatch', {
    message: 'This Idempotency-Key was used with another body. Repeat that body, or send a new key.',
  })
}

export interface KeyPage {
  limit?: number | undefined
  cursor?: string | undefined
}

/**
 * A page, or without a limit the whole list: rows beyond the first page follow in `more`, slice by slice. A
 * key that exists throughout is listed once; one created meanwhile may be missing.
 */
export async function listPage(ctx: Context, { limit, cursor }: KeyPage) {
  const rows = await listKeys(ctx.store.db, ctx.workspaceId, {
    after: cursor,
    limit: (limit ?? KEYS_PER_PAGE_MAX) + 1,
  })
  const { page, next } = toPage(rows, limit ?? KEYS_PER_PAGE_MAX)
  const tokens = page.map(describeKey)
  if (next === null) return { tokens }
  if (limit !== undefined) return { tokens, next: { limit: String(limit), cursor: next } }
  return { tokens, more: tokensAfter(ctx, next) }
}

async function* tokensAfter(ctx: Context, id: string) {
  for await (const rows of keySlices(ctx.store.db, ctx.workspaceId, id))
    yield { tokens: rows.map(describeKey) }
}

export const keySlices = (db: Db, workspaceId: string, after?: string) =>
  readSlices<KeyRow>((last) => listKeys(db, workspaceId, { after: last?.id ?? after, limit: SLICE_ROWS }))

const describeKey = (row: KeyRow) => ({
  id: row.id,
  label: row.label,
  createdAt: toIso(row.created_at),
  lastUsedAt: isoOrNull(row.last_used_at),
  // An expired key is shown as revoked at its expiry.
  revokedAt: isoOrNull(rowState(row) === 'expired' ? row.expires_at : row.revoked_at),
})

/** Adds the fields that only the dashboard and commands show. */
export const describeLifecycle = (row: KeyRow) => ({
  ...describeKey(row),
  state: rowState(row),
  expiresAt: isoOrNull(row.expires_at),
  lastFour: row.last_four,
})

/** A key of another workspace, an unknown one and an inactive one are the same: not found. */
export async function revoke(ctx: Context, id: string) {
  const position = await ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx, { lockWorkspace: false, revokedKeyId: id })
    const userId = requireMayRevokeKey(ctx, workspace, id)
    const change = await revokeActive(db, ctx, id, { userId })
    return change && publishChange(db, ctx, change)
  })
  await awaitPropagation(ctx, position, id)
  if (!position) throw await noActiveKey(ctx, id)
  return { id, revoked: true as const }
}

/**
 * The change to publish; undefined if the workspace has no active key with this id, or it is not a personal
 * one of the user.
 */
export async function revokeActive(
  db: Tx,
  ctx: Context,
  id: string,
  { userId, detail }: { userId?: string | undefined; detail?: AuditDetail } = {},
): Promise<KeyChange | undefined> {
  const { workspaceId } = ctx
  const revoked = await revokeKey(db, { workspaceId, id, userId }, ctx.clock())
  if (!revoked) return undefined
  const [change] = await recordRevoked(db, ctx, ctx.actor, [revoked], detail)
  return change
}

/** Writes the audit entries and events of revoked keys, and returns the changes to publish. */
export async function recordRevoked(
  db: Tx,
  services: Services,
  actor: Caller,
  keys: readonly RevokedKey[],
  detail?: AuditDetail,
): Promise<KeyChange[]> {
  await writeAuditEntries(
    db,
    services,
    keys.map(({ id, workspace_id }) => ({
      actor,
      ...(detail && { detail }),
      workspaceId: workspace_id,
      action: 'key.revoked' as const,
      target: { id },
    })),
  )
  await recordEvents(
    db,
    services,
    keys.map((key) => ({
      workspaceId: key.workspace_id,
      type: 'key.revoked',
      data: { key: keyInEvent(key), actor: eventActor(actor) },
    })),
  )
  return keys.map(({ id, hash }) => ({ kind: 'key', subjectId: id, hash }))
}

export const noSuchKey = (id: string) => new Fault('not_found', { message: `There is no API key ${id}.` })

/** The message is for the operator only: responses do not have it. */
export async function noActiveKey({ store, workspaceId }: Context, id: string): Promise<Fault> {
  const row = await findKeyById(store.db, id)
  if (row?.workspace_id !== workspaceId) return noSuchKey(id)
  const { state, revokedAt } = describeLifecycle(row)
  const message = `API key ${id} ${state === 'expired' ? 'expired' : 'was revoked'} at ${revokedAt}.`
  return new Fault('not_found', { message })
}
