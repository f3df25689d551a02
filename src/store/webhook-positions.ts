// Assigns positions in the queues of webhook endpoints, to deliveries that are committed, under a lock of the
// endpoint: what becomes visible later gets a higher position.
import { executeBulk, isPostgres } from './bulk.ts'
import { nowText } from './database-clock.ts'
import type { Db, Tx } from './store.ts'
import type { EndpointRow } from './webhook-queue.ts'

/** Endpoints of the first deliveries without a position, at most `limit`. */
export async function listUnassigned(db: Db, limit: number) {
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select('endpoint_id')
    .where('position', 'is', null)
    .orderBy('endpoint_id')
    .orderBy('sequence')
    .limit(limit)
    .execute()
  return { endpointIds: [...new Set(rows.map((row) => row.endpoint_id))], isComplete: rows.length < limit }
}

export type LockedQueue = Pick<EndpointRow, 'id' | 'last_position'>

/** Locks the endpoints, except those that are locked by another transaction. */
export function lockEndpoints(tx: Tx, ids: readonly string[]): Promise<LockedQueue[]> {
  const query = tx.selectFrom('webhook_endpoints').select(['id', 'last_position']).where('id', 'in', ids)
  return (isPostgres(tx) ? query.forUpdate().skipLocked() : query).execute()
}

export interface Assigned {
  deliveries: { endpoint_id: string; id: string; position: number }[]
  /** Of these deliveries, with the time of the database. */
  endpoints: (EndpointRow & { now: number })[]
}

/** For locked endpoints, at most `limit` deliveries of all of them together. They are due. */
export async function assignPositions(
  tx: Tx,
  locked: readonly LockedQueue[],
  limit: number,
): Promise<Assigned> {
  const deliveries = await executeBulk<Assigned['deliveries'][number]>(
    tx,
    { endpoint_id: 'text', last_position: 'bigint' },
    locked.map(({ id, last_position }) => [id, last_position]),
    `update webhook_deliveries set position = numbered.position
     from (
       select endpoint_id as queue, id as delivery, last_position + row_number() over (
         partition by endpoint_id order by sequence, id
       ) as position
       from (
         select delivery.endpoint_id, delivery.id, delivery.sequence, input.last_position
         from input join webhook_deliveries as delivery on delivery.endpoint_id = input.endpoint_id
         where delivery.position is null
         order by delivery.endpoint_id, delivery.sequence, delivery.id limit ${limit}
       ) as unassigned
     ) as numbered
     where webhook_deliveries.endpoint_id = numbered.queue and webhook_deliveries.id = numbered.delivery
     returning webhook_deliveries.endpoint_id, webhook_deliveries.id, webhook_deliveries.position`,
  )
  const last = new Map<string, number>()
  for (const { endpoint_id, position } of deliveries)
    last.set(endpoint_id, Math.max(position, last.get(endpoint_id) ?? position))
  const endpoints = await executeBulk<Assigned['endpoints'][number]>(
    tx,
    { queue: 'text', last: 'bigint' },
    [...last],
    `update webhook_endpoints set last_position = last,
       due_at = case when disabled_at is null then coalesce(due_at, ${nowText(tx)}) end
     from input where id = queue returning *, ${nowText(tx)} as now`,
  )
  return { deliveries, endpoints }
}

/** Deliveries without a position to endpoints that were deleted when they were recorded. */
export async function deleteOrphans(tx: Tx, endpointIds: readonly string[]): Promise<void> {
  await tx
    .deleteFrom('webhook_deliveries')
    .where('endpoint_id', 'in', endpointIds)
    .where('position', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('webhook_endpoints')
            .select('id')
            .whereRef('webhook_endpoints.id', '=', 'webhook_deliveries.endpoint_id'),
        ),
      ),
    )
    .execute()
}
