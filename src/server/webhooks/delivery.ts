// Sends the deliveries in the queues of webhook endpoints. Each node polls for new events and for endpoints
// with deliveries, claims them, and sends to many at the same time, so that a slow one does not delay others.
import { setTimeout as delay } from 'node:timers/promises'
import { createOutageReporter, type OutageEvents } from '../../lib/outage.ts'
import type { Services } from '../domain/context.ts'
import {
  type Attempt,
  CLAIM_MS,
  type ClaimedEndpoint,
  type ClaimLimits,
  claimEndpoints,
  nextDelivery,
  type QueuedDelivery,
  queueEvents,
  recordAttempt,
  release,
} from '../domain/webhooks/queue.ts'
import { isInOverlap, type WebhookSecrets } from '../domain/webhooks/secrets.ts'
import type { Targets } from '../outbound/targets.ts'
import { DeliverySlots } from './delivery-slots.ts'
import { SEND_TIMEOUT_MS, type SendResult, sendWebhook } from './send.ts'
import { signedHeaders } from './signature.ts'

const POLL_INTERVAL_MS = 1_000
/**
 * Endpoints that a node sends to at the same time; a workspace has at most 10. They share the database pool
 * with requests.
 */
const ENDPOINTS_MAX = 128
/** Maximum of slots displaced after a poll: each costs a transaction. */
const DISPLACED_MAX = 16
/** A node releases an endpoint after this time, so that other endpoints get their turn. */
const TURN_MS = 10_000
/** Part of the claim that is reserved for recording the result of the longest request. */
const RECORD_MS = 5_000
const STOP_TIMEOUT_MS = 1_000

export interface DeliveryOptions extends OutageEvents {
  secrets: WebhookSecrets
  targets: Targets
  userAgent: string
  pollIntervalMs?: number
  sendTimeoutMs?: number
  endpointsMax?: number
  turnMs?: number
}

export function startWebhookDelivery(services: Services, options: DeliveryOptions) {
  const { pollIntervalMs = POLL_INTERVAL_MS, endpointsMax = ENDPOINTS_MAX } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const active = new Set<Promise<void>>()
  const slots = new DeliverySlots(endpointsMax)

  const polls = createOutageReporter(options, () => signal.aborted)
  const sends = createOutageReporter(options, () => signal.aborted)

  function start(endpoint: ClaimedEndpoint, claimedAt: number): void {
    const turn = slots.take(endpoint)
    const aborted = AbortSignal.any([signal, turn.signal])
    const sending = sends.observe(sendQueue(services, endpoint, { ...options, signal: aborted, claimedAt }))
    active.add(sending)
    sending.finally(() => {
      active.delete(sending)
      turn.release()
    })
  }

  /** Returns how many endpoints were claimed. */
  async function claim(limits: ClaimLimits): Promise<number> {
    if (limits.limit <= 0) return 0
    const claimedAt = performance.now()
    const endpoints = await claimEndpoints(services, limits)
    for (const endpoint of endpoints) start(endpoint, claimedAt)
    return endpoints.length
  }

  async function poll(): Promise<void> {
    await queueEvents(services)
    const idle = slots.limitsForIdle()
    await claim(idle)
    if (idle.exceptWorkspaces.length > 0) await claim(slots.limitsForAll())
    for (let count = 0; count < DISPLACED_MAX && (await claim(slots.limitsForLighter())) > 0; count++);
  }

  async function pollUntilStopped(): Promise<void> {
    while (!signal.aborted) {
      await polls.observe(poll())
      // Jitter, so that nodes that were started together do not poll simultaneously.
      await delay(pollIntervalMs * (0.5 + Math.random() / 2), undefined, { signal, ref: false }).catch(
        () => {},
      )
    }
  }

  const polling = pollUntilStopped()
  return {
    /** Aborts requests, and releases the endpoints so that another node continues. */
    async stop(): Promise<void> {
      stopping.abort()
      const all = polling.then(() => Promise.all(active))
      // A database that does not respond must not delay the shutdown.
      await Promise.race([all, delay(STOP_TIMEOUT_MS, undefined, { ref: false })])
    },
  }
}

type SendOptions = DeliveryOptions & { signal: AbortSignal }

/** Sends deliveries to a claimed endpoint until one fails, none is left, or its turn ends. */
async function sendQueue(
  services: Services,
  endpoint: ClaimedEndpoint,
  { claimedAt, ...options }: SendOptions & { claimedAt: number },
): Promise<void> {
  const { signal, sendTimeoutMs = SEND_TIMEOUT_MS, turnMs = TURN_MS } = options
  const { next_position, failing_since, now } = endpoint
  let position = next_position
  let failingMs = failing_since === null ? 0 : now - failing_since
  let renewedAt = claimedAt
  do {
    const delivery = await nextDelivery(services, endpoint, position)
    if (!delivery) return release(services, endpoint, position === next_position ? undefined : position)
    // The database is slow, so the claim could expire during the request, and another node could send it too.
    if (performance.now() - renewedAt > CLAIM_MS - sendTimeoutMs - RECORD_MS) break
    const attempt = await send(endpoint, delivery, services.clock(), options)
    // It may have arrived, and is sent again.
    if (signal.aborted && attempt.status === null) break
    renewedAt = performance.now()
    if (!(await recordAttempt(services, endpoint, { delivery, attempt, failingMs }))) return
    position = delivery.position + 1
    failingMs = 0
  } while (!signal.aborted && performance.now() - claimedAt < turnMs)
  await release(services, endpoint, position)
}

async function send(
  endpoint: ClaimedEndpoint,
  { event_id: id, body }: QueuedDelivery,
  sentAt: number,
  { secrets, targets, userAgent, signal, sendTimeoutMs }: SendOptions,
): Promise<Attempt> {
  const { url } = endpoint
  const startedAt = performance.now()
  const createAttempt = (result: SendResult) => ({
    ...result,
    url,
    duration_ms: Math.round(performance.now() - startedAt),
  })
  const keys = decryptSecrets(endpoint, secrets)
  if (!keys) return createAttempt({ status: null, response: null, error: UNREADABLE_SECRET })
  const headers = {
    'content-type': 'application/json',
    'user-agent': userAgent,
    ...(await signedHeaders({ id, sentAt, body }, keys)),
  }
  const webhook = { url, headers, body }
  return createAttempt(
    await sendWebhook(webhook, { targets, signal, ...(sendTimeoutMs && { timeoutMs: sendTimeoutMs }) }),
  )
}

const UNREADABLE_SECRET =
  'The secret cannot be decrypted: ADIT_SECRET of the server has changed. Rotate the secret of this endpoint.'

/** The current secret, then the previous one. Undefined if the current one cannot be decrypted. */
function decryptSecrets(
  { secret, previous_secret, previous_secret_until, now }: ClaimedEndpoint,
  { decrypt }: WebhookSecrets,
): string[] | undefined {
  const current = decryptOrUndefined(secret)
  if (current === undefined) return undefined
  const isOverlap = previous_secret !== null && isInOverlap(previous_secret_until, now)
  const previous = isOverlap ? decryptOrUndefined(previous_secret) : undefined
  return previous === undefined ? [current] : [current, previous]

  function decryptOrUndefined(encrypted: string): string | undefined {
    try {
      return decrypt(encrypted)
    } catch {
      return undefined
    }
  }
}
