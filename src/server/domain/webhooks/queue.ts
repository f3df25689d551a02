// The rules of webhook queues: one node at a time sends to an endpoint, in the order of positions. A delivery
// that fails is retried for a day and blocks later ones; then the endpoint is disabled.

import { withoutLinks } from '../../../contract/text.ts'
import { DAY_MS, HOUR_MS } from '../../../lib/time.ts'
import type { QueuedDelivery } from '../../store/webhooks/events.ts'
import {
  type AssignedEndpoint,
  assignPositions,
  deleteOrphans,
  listUnassigned,
  lockEndpoints,
} from '../../store/webhooks/positions.ts'
import {
  type Attempt,
  type ClaimedEndpoint,
  type ClaimLimits,
  claimDue,
  disableIf,
  type EndpointRow,
  type Failure,
  findNextDelivery,
  hasDeliveries,
  recordDelivered,
  recordFailed,
  releaseClaim,
  trimDeliveries,
} from '../../store/webhooks/queue.ts'
import { lockWorkspace } from '../../store/workspaces.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Actor, Services } from '../context.ts'
import { tunnelEventTypes } from '../events/tunnel-events.ts'
import { createAlert } from '../notices/alerts.ts'
import { redactUrl } from './url.ts'

export type { Attempt, ClaimedEndpoint, ClaimLimits, QueuedDelivery }

/** Longer than an attempt may take. The claim is renewed with each delivery. */
export const CLAIM_MS = 20_000

const RETRY_FIRST_MS = 5_000
const RETRY_MAX_MS = HOUR_MS
/** An endpoint that has been failing for longer is disabled. */
const RETRIES_MS = DAY_MS
/** An endpoint with more pending deliveries is disabled, not counting events of tunnels. */
export const PENDING_MAX = 100_000
/** Like `PENDING_MAX`, for an endpoint that has been failing for an hour. */
export const PENDING_FAILING_MAX = 10_000
const FAILING_MS = HOUR_MS
/** Maximum of deliveries that get positions in one transaction. */
const ASSIGNED_MAX = 1_000
/** Maximum of transactions in one call, so that sending continues while many events arrive. */
const ROUNDS_MAX = 10
/** Maximum of deliveries in the log of an endpoint. */
const LOGGED_MAX = 1_000
/** The log is trimmed once per this many deliveries. */
const TRIM_ROWS = 100

const GONE = 410

type DisabledReason = 'failing' | 'gone' | 'backlog'

/** Explanations in the email. */
const explanations: Record<DisabledReason, string> = {
  failing: 'Deliveries to it failed for 24 hours.',
  gone: 'It responded with status 410, Gone.',
  backlog: `${PENDING_MAX} deliveries were waiting, or ${PENDING_FAILING_MAX} while it failed for an hour.`,
}

const server: Actor = { kind: 'server', id: 'adit' }

/**
 * The delay is as long as the endpoint has been failing, so it doubles with each failure. Jitter keeps
 * endpoints that failed together from retrying together.
 */
export const retryInMs = (failingMs: number, random: number): number =>
  Math.round(Math.min(RETRY_FIRST_MS + failingMs, RETRY_MAX_MS) * (0.5 + random / 2))

/**
 * Adds newly committed events to the queues of their endpoints, on any node. An endpoint whose queue is too
 * long is disabled afterwards, so none of its events is lost.
 */
export async function queueEvents(services: Services): Promise<void> {
  const { store } = services
  let after = ''
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const { endpointIds, isComplete } = await listUnassigned(store.db, after, ASSIGNED_MAX)
    if (endpointIds.length === 0) return
    const { locked, endpoints } = await store.transaction(async (tx) => {
      const locked = await lockEndpoints(tx, endpointIds)
      if (locked.length < endpointIds.length) await deleteOrphans(tx, endpointIds)
      return { locked, ...(await assignPositions(tx, locked, ASSIGNED_MAX)) }
    })
    // Endpoints that another transaction has locked are left to the next call.
    const lockedIds = new Set(locked.map(({ id }) => id))
    const firstLocked = endpointIds.findIndex((id) => lockedIds.has(id))
    const skipped = firstLocked === -1 ? endpointIds : endpointIds.slice(0, firstLocked)
    after = skipped.at(-1) ?? after
    for (const endpoint of endpoints) {
      const { enabled_position } = endpoint
      if (!(await isBacklogged(services, endpoint))) continue
      await disable(services, endpoint, {
        reason: 'backlog',
        expected: { disabled_at: null, enabled_position },
      })
    }
    if (isComplete) return
  }
}

/**
 * Deliveries from before an owner enabled the endpoint do not count, so that they can be sent. Nor do events
 * of tunnels, because an edge could cause any number of them.
 */
async function isBacklogged({ store }: Services, endpoint: AssignedEndpoint): Promise<boolean> {
  const { last_position, next_position, enabled_position, failing_since, disabled_at, now } = endpoint
  const isFailing = failing_since !== null && failing_since <= now - FAILING_MS
  const from = Math.max(next_position, enabled_position + 1)
  const excess = last_position - from + 1 - (isFailing ? PENDING_FAILING_MAX : PENDING_MAX)
  if (disabled_at !== null || excess <= 0) return false
  return !(await hasDeliveries(store.db, endpoint.id, { from, types: tunnelEventTypes, count: excess }))
}

export const claimEndpoints = (services: Services, limits: ClaimLimits): Promise<ClaimedEndpoint[]> =>
  claimDue(services.store, { claim: services.ids('clm'), claimMs: CLAIM_MS, ...limits })

export const nextDelivery = (
  { store }: Services,
  { id }: ClaimedEndpoint,
  position: number,
): Promise<QueuedDelivery | undefined> => findNextDelivery(store.db, id, position)

const isDelivered = ({ status }: Pick<Attempt, 'status'>): boolean =>
  status !== null && status >= 200 && status < 300

interface AttemptOutcome {
  delivery: QueuedDelivery
  attempt: Attempt
  /** How long the endpoint had been failing before this attempt. */
  failingMs: number
}

/** Returns whether the node still has the claim, and may send the next delivery. */
export async function recordAttempt(
  services: Services,
  endpoint: ClaimedEndpoint,
  { delivery, attempt, failingMs }: AttemptOutcome,
): Promise<boolean> {
  const { position } = delivery
  const { store, instruments } = services
  instruments.webhookAttempts[isDelivered(attempt) ? 'delivered' : 'failed'] += 1
  if (isDelivered(attempt))
    return store.transaction(async (tx) => {
      if (!(await recordDelivered(tx, endpoint, { position, attempt, claimMs: CLAIM_MS }))) return false
      if (position % TRIM_ROWS === 0) await trimDeliveries(tx, endpoint.id, position - LOGGED_MAX)
      return true
    })
  const retry = retryInMs(failingMs, Math.random())
  const failure = await store.transaction((tx) =>
    recordFailed(tx, endpoint, { position, attempt, retryInMs: retry }),
  )
  const reason = failure && reasonToDisable(attempt, failure)
  if (reason)
    await disable(services, endpoint, {
      reason,
      expected: { failing_since: failure.failingSince, disabled_at: null },
    })
  return false
}

function reasonToDisable({ status }: Attempt, { failingSince, now }: Failure) {
  if (status === GONE) return 'gone'
  return now - failingSince >= RETRIES_MS ? 'failing' : undefined
}

interface Disabling {
  reason: DisabledReason
  /** Values that differ if an owner has changed the endpoint meanwhile. */
  expected: Parameters<typeof disableIf>[2]
}

const disable = (
  services: Services,
  { id, workspace_id: workspaceId, url }: EndpointRow,
  { reason, expected }: Disabling,
): Promise<void> =>
  services.store.transaction(async (tx) => {
    const at = services.clock()
    // Locked before the endpoint, as in other transactions.
    await lockWorkspace(tx, workspaceId)
    if (!(await disableIf(tx, id, expected, { at, reason }))) return
    await writeAudit(tx, services, {
      workspaceId,
      actor: server,
      action: 'webhook.disabled',
      target: { id, name: redactUrl(url) },
      changes: { reason: [null, reason] },
    })
    await createAlert(tx, services, {
      kind: 'webhook-disabled',
      workspaceId,
      subjectId: id,
      dedupKey: String(at),
      title: 'has a webhook that was disabled',
      text:
        `${explanations[reason]} Its host is ${withoutLinks(new URL(url).host)}. ` +
        'It misses all events until an owner enables it again, under Webhooks.',
    })
  })

/** Ends the claim. `position` is that of the next delivery; undefined if there is none. */
export async function release(
  { store }: Services,
  endpoint: ClaimedEndpoint,
  position: number | undefined,
): Promise<void> {
  // Positions up to `last_position` existed when the endpoint was claimed, so retention has deleted them.
  const next = position ?? Math.max(endpoint.next_position, endpoint.last_position + 1)
  await store.transaction((tx) => releaseClaim(tx, endpoint, next))
}
