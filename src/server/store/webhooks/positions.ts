// Assigns committed deliveries their position in the queue of the webhook endpoint while it is locked, so
// that whatever is committed later gets a higher position.
import { executeBulk, isPostgres } from '../engine/bulk.ts'
import { nowText } from '../engine/clock.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { EndpointRow } from './queue.ts'

/** Few enough for one statement on both engines. */
const ENDPOINTS_MAX = 100

/** Endpoints of the first `limit` deliveries without a position, to endpoints whose id follows `after`. */
export async function listUnassigned(db: Db, after: string, limit: number) {
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select('endpoint_id')
    .where('position', 'is', null)
    .where('endpoint_id', '>', after)
    .orderBy('endpoint_id')
    .orderBy('sequence')
    .limit(limit)
    .execute()
  const endpointIds = [...new Set(rows.map((row) => row.endpoint_id))]
  return {
    endpointIds: endpointIds.slice(0, ENDPOINTS_MAX),
    isComplete: rows.length < limit && endpointIds.length <= ENDPOINTS_MAX,
  }
}

type LockedEndpoint = Pick<EndpointRow, 'id' | 'last_position'>

/** Locks the endpoints, except those that are locked by another transaction. */
export function lockEndpoints(tx: Tx, ids: readonly string[]): Promise<LockedEndpoint[]> {
  const query = tx.selectFrom('webhook_endpoints').select(['id', 'last_position']).where('id', 'in', ids)
  return (isPostgres(tx) ? query.forUpdate().skipLocked() : query).execute()
}

/** `now` is the time of the database. */
export type AssignedEndpoint = EndpointRow & { now: number }

interface Assigned {
  deliveries: { endpoint_id: string; id: string; position: number }[]
  /** The endpoints of these deliveries, which are now due. */
  endpoints: AssignedEndpoint[]
}

/** Assigns positions to at most `limit` deliveries of the locked endpoints in total. */
export async function assignPositions(
  tx: Tx,
  locked: readonly LockedEndpoint[],
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
  const endpoints = await executeBulk<AssignedEndpoint>(
    tx,
    { queue: 'text', last: 'bigint' },
    [...last],
    `update webhook_endpoints set last_position = last,
       due_at = case when disabled_at is null then coalesce(due_at, ${nowText(tx)}) end
     from input where id = queue returning *, ${nowText(tx)} as now`,
  )
  return { deliveries, endpoints }
}

/** Deletes deliveries without a position whose endpoint no longer exists. */
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
