// SQL of the queues of webhook endpoints. A node claims an endpoint for a limited time before it sends to it,
// so that another node can claim it if the first is killed. `due_at` is the time of the next attempt, or the
// end of the claim. All times are from the database's clock.
import { type Selectable, sql } from 'kysely'
import { isPostgres } from '../engine/bulk.ts'
import { nowIn, statementTimeIn } from '../engine/clock.ts'
import type { Db, Store, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { type DeliveryRow, type QueuedDelivery, selectDeliveries } from './events.ts'

export type EndpointRow = Selectable<Tables['webhook_endpoints']>

/** `now` is the time of the database. */
export type ClaimedEndpoint = EndpointRow & { claim: string; now: number }

const selectDue = (db: Db, limit: number) =>
  db
    .selectFrom('webhook_endpoints')
    .select(['id', 'due_at'])
    .where('due_at', 'is not', null)
    .where('due_at', '<=', statementTimeIn(db))
    .orderBy('due_at')
    .limit(limit)

export interface ClaimLimits {
  limit: number
  /** Maximum of endpoints whose last attempt failed. */
  failingLimit: number
  exceptWorkspaces: readonly string[]
}

/** Claims endpoints whose next attempt is due or whose claim has expired, longest due first. */
export async function claimDue(
  store: Store,
  { claim, claimMs, ...limits }: ClaimLimits & { claim: string; claimMs: number },
): Promise<ClaimedEndpoint[]> {
  // Read first: an update would lock the SQLite file, and most of the time nothing is due.
  if ((await selectDue(store.db, 1).execute()).length === 0) return []
  return store.transaction(async (tx) => {
    const ids = await lockDue(tx, limits)
    if (ids.length === 0) return []
    const rows = await tx
      .updateTable('webhook_endpoints')
      .set({ claim, due_at: sql<number>`${nowIn(tx)} + ${claimMs}` })
      .where('id', 'in', ids)
      .returningAll()
      .returning(nowIn(tx).as('now'))
      .execute()
    return rows.map((row) => ({ ...row, claim }))
  })
}

/** Skips endpoints that another node is claiming or assigning positions for. */
async function lockDue(tx: Tx, { limit, failingLimit, exceptWorkspaces }: ClaimLimits): Promise<string[]> {
  const lock = (limit: number, failing: 'is' | 'is not') => {
    const due = selectDue(tx, limit).where('failing_since', failing, null)
    const query = exceptWorkspaces.length > 0 ? due.where('workspace_id', 'not in', exceptWorkspaces) : due
    return (isPostgres(tx) ? query.forUpdate().skipLocked() : query).execute()
  }
  const healthy = await lock(limit, 'is')
  const failing = failingLimit > 0 ? await lock(failingLimit, 'is not') : []
  return [...healthy, ...failing]
    .sort((a, b) => (a.due_at ?? 0) - (b.due_at ?? 0))
    .slice(0, limit)
    .map(({ id }) => id)
}

/** The first delivery from this position on. There may be none, because retention deletes deliveries. */
export const findNextDelivery = (
  db: Db,
  endpointId: string,
  position: number,
): Promise<QueuedDelivery | undefined> =>
  selectDeliveries(db, endpointId)
    .where('position', '>=', position)
    .orderBy('position')
    .limit(1)
    .executeTakeFirst()

/** Whether at least `count` deliveries of these types are in the queue from this position on. */
export async function hasDeliveries(
  db: Db,
  endpointId: string,
  { from, types, count }: { from: number; types: readonly string[]; count: number },
): Promise<boolean> {
  const row = await selectDeliveries(db, endpointId)
    .clearSelect()
    .select('id')
    .where('position', '>=', from)
    .where('type', 'in', types)
    .orderBy('position')
    .limit(1)
    .offset(count - 1)
    .executeTakeFirst()
  return row !== undefined
}

export type Attempt = Pick<DeliveryRow, 'status' | 'error' | 'response'> & {
  url: string
  duration_ms: number
}

type Claim = Pick<ClaimedEndpoint, 'id' | 'claim'>

const updateClaimed = (tx: Tx, { id, claim }: Claim) =>
  tx.updateTable('webhook_endpoints').where('id', '=', id).where('claim', '=', claim)

/** Records a success and extends the claim. Returns false if another node has claimed the endpoint. */
export async function recordDelivered(
  tx: Tx,
  endpoint: Claim,
  { position, attempt, claimMs }: { position: number; attempt: Attempt; claimMs: number },
): Promise<boolean> {
  const { numUpdatedRows } = await updateClaimed(tx, endpoint)
    .set({
      next_position: position + 1,
      failing_since: null,
      due_at: sql<number>`${nowIn(tx)} + ${claimMs}`,
    })
    .executeTakeFirst()
  if (numUpdatedRows === 0n) return false
  await recordAttempt(tx, { endpointId: endpoint.id, position, attempt, isDelivered: true })
  return true
}

export interface Failure {
  failingSince: number
  /** The time of the database. */
  now: number
}

/** Postpones the next attempt and ends the claim. Undefined if another node has claimed the endpoint. */
export async function recordFailed(
  tx: Tx,
  endpoint: Claim,
  { position, attempt, retryInMs }: { position: number; attempt: Attempt; retryInMs: number },
): Promise<Failure | undefined> {
  const updated = await updateClaimed(tx, endpoint)
    .set((row) => ({
      next_position: position,
      failing_since: sql<number>`coalesce(${row.ref('failing_since')}, ${nowIn(tx)})`,
      due_at: sql<number>`${nowIn(tx)} + ${retryInMs}`,
      claim: null,
    }))
    .returning([sql<number>`failing_since`.as('failingSince'), nowIn(tx).as('now')])
    .executeTakeFirst()
  if (updated) await recordAttempt(tx, { endpointId: endpoint.id, position, attempt, isDelivered: false })
  return updated
}

interface RecordedAttempt {
  endpointId: string
  position: number
  attempt: Attempt
  isDelivered: boolean
}

const recordAttempt = (tx: Tx, { endpointId, position, attempt, isDelivered }: RecordedAttempt) =>
  tx
    .updateTable('webhook_deliveries')
    .set((row) => ({
      ...attempt,
      attempts: sql<number>`${row.ref('attempts')} + 1`,
      attempted_at: nowIn(tx),
      ...(isDelivered && { delivered_at: nowIn(tx) }),
    }))
    .where('endpoint_id', '=', endpointId)
    .where('position', '=', position)
    .execute()

/** Ends the claim. Deliveries that are left are due now. */
export const releaseClaim = (tx: Tx, endpoint: Claim, nextPosition: number) =>
  updateClaimed(tx, endpoint)
    .set((row) => ({
      claim: null,
      next_position: nextPosition,
      due_at: sql<number>`case when ${row.ref('last_position')} >= ${nextPosition} then ${nowIn(tx)} end`,
    }))
    .execute()

/** Disables the endpoint and keeps its queue. Returns false if the endpoint has changed. */
export async function disableIf(
  tx: Tx,
  id: string,
  expected: Partial<Pick<EndpointRow, 'failing_since' | 'disabled_at' | 'enabled_position'>>,
  { at, reason }: { at: number; reason: string },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('webhook_endpoints')
    .set({ disabled_at: at, disabled_reason: reason, due_at: null, claim: null })
    .where('id', '=', id)
    .where(({ and }) => and(expected))
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Deletes deliveries before the position from the log. */
export const trimDeliveries = (tx: Tx, endpointId: string, before: number) =>
  tx
    .deleteFrom('webhook_deliveries')
    .where('endpoint_id', '=', endpointId)
    .where('position', '<', before)
    .execute()
