// Webhook endpoints of a workspace, which its owners manage.

import type { AuditAction } from '../../../contract/audit-actions.ts'
import type { EventType } from '../../../contract/events.ts'
import { WEBHOOKS_MAX } from '../../../contract/limits.ts'
import { type Overlap, overlapHours } from '../../../lib/credentials/rotation.ts'
import { HOUR_MS } from '../../../lib/time.ts'
import type { Tx } from '../../store/engine/store.ts'
import {
  deleteEndpoint,
  type EndpointChange,
  insertEndpoint,
  listEndpoints,
  lockEndpoint,
  restartQueue,
  updateEndpoint,
} from '../../store/webhooks/endpoints.ts'
import type { EndpointRow } from '../../store/webhooks/queue.ts'
import { reauthorize } from '../actors.ts'
import { type Changes, changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { MemberContext } from '../context.ts'
import { Fault, invalid } from '../fault.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import type { WebhookSecrets } from './secrets.ts'
import { redactUrl } from './url.ts'

export interface WebhookRules {
  secrets: WebhookSecrets
  /** Whether private networks are configured; http is allowed only there. */
  allowsHttp: boolean
  /** Host names are checked for each request instead, because what they resolve to can change. */
  isForbiddenLiteral(url: URL): boolean
}

export async function listWebhooks({ store, workspaceId }: MemberContext) {
  return (await listEndpoints(store.db, workspaceId)).map(describeEndpoint)
}

const describeEndpoint = (row: EndpointRow) => ({
  id: row.id,
  url: row.url,
  description: row.description,
  events: parseEvents(row.events),
  createdAt: toIso(row.created_at),
  disabledAt: isoOrNull(row.disabled_at),
  disabledReason: row.disabled_reason,
  pending: row.last_position - row.next_position + 1,
  failingSince: isoOrNull(row.failing_since),
  previousSecretUntil: isoOrNull(row.previous_secret_until),
})

const parseEvents = (text: string | null) => (text ?? '').split(',').filter(Boolean) as EventType[]

const serializeEvents = (events: readonly EventType[]): string | null =>
  events.length === 0 ? null : `,${events.join(',')},`

interface NewWebhook {
  url: string
  description?: string | undefined
  events?: EventType[] | undefined
}

export async function createWebhook(
  ctx: MemberContext,
  rules: WebhookRules,
  { url, description = '', events = [] }: NewWebhook,
) {
  const { workspaceId, actor } = ctx
  requireUrl(url, rules)
  const { secrets } = rules
  const secret = secrets.create()
  const row = {
    id: ctx.ids('whk'),
    workspace_id: workspaceId,
    url,
    description,
    events: serializeEvents(events),
    secret: secrets.encrypt(secret),
    created_at: ctx.clock(),
    created_by: actor.name,
  }
  return ctx.store.transaction(async (tx) => {
    await reauthorize(tx, ctx)
    if ((await listEndpoints(tx, workspaceId)).length >= WEBHOOKS_MAX)
      throw new Fault('conflict', {
        message: `The workspace has ${WEBHOOKS_MAX} webhook endpoints, which is the limit. Delete one first.`,
      })
    await insertEndpoint(tx, row)
    const changes = changesBetween(null, { url, description, events })
    await audit(tx, ctx, 'webhook.created', row, changes)
    const created = (await lockEndpoint(tx, { workspaceId, id: row.id })) as EndpointRow
    return { ...describeEndpoint(created), secret }
  })
}

function requireUrl(text: string, { allowsHttp, isForbiddenLiteral }: WebhookRules): void {
  const url = URL.parse(text)
  if (!url || url.username || url.password || url.hash)
    throw invalid('/body/url', 'must be a URL without user, password or fragment')
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && allowsHttp))
    throw invalid(
      '/body/url',
      'must begin with https://; http is only for private networks that the operator allows',
    )
  if (isForbiddenLiteral(url))
    throw invalid(
      '/body/url',
      'must have a public address; the operator allows others with ADIT_WEBHOOK_PRIVATE_NETWORKS',
    )
}

interface WebhookChange extends Partial<NewWebhook> {
  enabled?: boolean | undefined
}

export async function updateWebhook(
  ctx: MemberContext,
  rules: WebhookRules,
  id: string,
  { enabled, ...input }: WebhookChange,
) {
  if (input.url !== undefined) requireUrl(input.url, rules)
  return withEndpoint(ctx, id, async (tx, before) => {
    const { url, description, disabled_at } = before
    const current = { url, description, events: parseEvents(before.events) }
    const updated = {
      ...current,
      ...Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)),
    }
    const changes = changesBetween(current, updated)
    const isEnabled = disabled_at === null
    const change: EndpointChange = { ...updated, events: serializeEvents(updated.events) }
    if (enabled !== undefined && enabled !== isEnabled) {
      change.disabled_at = enabled ? null : ctx.clock()
      change.disabled_reason = enabled ? null : 'owner'
      if (enabled) change.enabled_position = before.last_position
      await audit(tx, ctx, enabled ? 'webhook.enabled' : 'webhook.disabled', before)
    }
    if (Object.keys(changes).length > 0) await audit(tx, ctx, 'webhook.changed', before, changes)
    await updateEndpoint(tx, id, change)
    if (updated.url !== url || 'disabled_at' in change) await restartQueue(tx, id)
    return describeEndpoint((await lockEndpoint(tx, { workspaceId: ctx.workspaceId, id })) as EndpointRow)
  })
}

export const deleteWebhook = (ctx: MemberContext, id: string) =>
  withEndpoint(ctx, id, async (tx, endpoint) => {
    await deleteEndpoint(tx, id)
    await audit(tx, ctx, 'webhook.deleted', endpoint)
    return { id, deleted: true as const }
  })

export const rotateSecret = (ctx: MemberContext, { secrets }: WebhookRules, id: string, overlap: Overlap) =>
  withEndpoint(ctx, id, async (tx, endpoint) => {
    const secret = secrets.create()
    const until = overlap === 'none' ? null : ctx.clock() + overlapHours[overlap] * HOUR_MS
    await updateEndpoint(tx, id, {
      secret: secrets.encrypt(secret),
      previous_secret: until === null ? null : endpoint.secret,
      previous_secret_until: until,
    })
    await restartQueue(tx, id)
    const previousSecretUntil = isoOrNull(until)
    await audit(tx, ctx, 'webhook.secret-rotated', endpoint, changesBetween(null, { previousSecretUntil }))
    return { secret, previousSecretUntil }
  })

/** Authorizes the user and locks the endpoint. An endpoint of another workspace is not found. */
export const withEndpoint = <T>(
  ctx: MemberContext,
  id: string,
  act: (tx: Tx, endpoint: EndpointRow) => Promise<T>,
): Promise<T> =>
  ctx.store.transaction(async (tx) => {
    await reauthorize(tx, ctx)
    const endpoint = await lockEndpoint(tx, { workspaceId: ctx.workspaceId, id })
    if (!endpoint) throw new Fault('not_found')
    return act(tx, endpoint)
  })

export const audit = (
  tx: Tx,
  ctx: MemberContext,
  action: AuditAction,
  { id, url }: Pick<EndpointRow, 'id' | 'url'>,
  { url: urls, ...changes }: Changes = {},
): Promise<void> =>
  writeAudit(tx, ctx, {
    workspaceId: ctx.workspaceId,
    actor: ctx.actor,
    action,
    target: { id, name: redactUrl(url) },
    changes: { ...(urls && { url: redactUrls(urls) }), ...changes },
  })

const redactUrls = ([before, after]: NonNullable<Changes[string]>): Changes[string] => [
  before === null ? null : redactUrl(String(before)),
  redactUrl(String(after)),
]
