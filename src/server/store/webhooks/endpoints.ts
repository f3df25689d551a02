// SQL of webhook endpoints as their owners see them, and of the log of deliveries.
import { sql } from 'kysely'
import { isPostgres } from '../engine/bulk.ts'
import { nowIn } from '../engine/clock.ts'
import type { Db, Tx } from '../engine/store.ts'
import { type QueuedDelivery, selectDeliveries } from './events.ts'
import type { EndpointRow } from './queue.ts'

interface EndpointName {
  workspaceId: string
  id: string
}

const selectEndpoints = (db: Db, workspaceId: string) =>
  db.selectFrom('webhook_endpoints').selectAll().where('workspace_id', '=', workspaceId)

export const listEndpoints = (db: Db, workspaceId: string): Promise<EndpointRow[]> =>
  selectEndpoints(db, workspaceId).orderBy('id').execute()

/** Endpoints that the server disabled, and not an owner. */
export const listDisabledByServer = (db: Db, workspaceId: string) =>
  db
    .selectFrom('webhook_endpoints')
    .select(['id', 'url', sql<number>`disabled_at`.as('disabledAt')])
    .where('workspace_id', '=', workspaceId)
    .where('disabled_at', 'is not', null)
    .where('disabled_reason', '<>', 'owner')
    .orderBy('id')
    .execute()

export const findEndpoint = (db: Db, { workspaceId, id }: EndpointName): Promise<EndpointRow | undefined> =>
  selectEndpoints(db, workspaceId).where('id', '=', id).executeTakeFirst()

export function lockEndpoint(tx: Tx, { workspaceId, id }: EndpointName): Promise<EndpointRow | undefined> {
  const query = selectEndpoints(tx, workspaceId).where('id', '=', id)
  return (isPostgres(tx) ? query.forUpdate() : query).executeTakeFirst()
}

type NewEndpoint = Pick<
  EndpointRow,
  'id' | 'workspace_id' | 'url' | 'description' | 'events' | 'secret' | 'created_at' | 'created_by'
>

export async function insertEndpoint(tx: Tx, row: NewEndpoint): Promise<void> {
  await tx
    .insertInto('webhook_endpoints')
    .values({ ...row, last_position: 0, next_position: 1 })
    .execute()
}

export type EndpointChange = Partial<
  Pick<
    EndpointRow,
    | 'url'
    | 'description'
    | 'events'
    | 'disabled_at'
    | 'disabled_reason'
    | 'enabled_position'
    | 'secret'
    | 'previous_secret'
    | 'previous_secret_until'
  >
>

export async function updateEndpoint(tx: Tx, id: string, change: EndpointChange): Promise<void> {
  await tx.updateTable('webhook_endpoints').set(change).where('id', '=', id).execute()
}

/** Deletes at most `limit` previous secrets whose overlap has ended. Returns how many. */
export async function deletePreviousSecrets(tx: Tx, before: number, limit: number): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable('webhook_endpoints')
    .set({ previous_secret: null, previous_secret_until: null })
    .where('id', 'in', (endpoints) =>
      endpoints
        .selectFrom('webhook_endpoints')
        .select('id')
        .where('previous_secret_until', '<=', before)
        .orderBy('previous_secret_until')
        .limit(limit),
    )
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/**
 * Call it after a change that affects deliveries. Ends the claim and the series of failures, and makes the
 * queue due now unless the endpoint is disabled.
 */
export async function restartQueue(tx: Tx, id: string): Promise<void> {
  await tx
    .updateTable('webhook_endpoints')
    .set((row) => ({
      claim: null,
      failing_since: null,
      due_at: sql<number | null>`case when ${row.ref('disabled_at')} is null
        and ${row.ref('last_position')} >= ${row.ref('next_position')} then ${nowIn(tx)} end`,
    }))
    .where('id', '=', id)
    .execute()
}

export async function deleteEndpoint(tx: Tx, id: string): Promise<void> {
  await tx.deleteFrom('webhook_endpoints').where('id', '=', id).execute()
}

export type ListedDelivery = Omit<
  QueuedDelivery,
  'endpoint_id' | 'id' | 'sequence' | 'url' | 'body' | 'response'
>

/** Newest first. */
export function listDeliveries(
  db: Db,
  endpointId: string,
  { before, limit }: { before: number | undefined; limit: number },
): Promise<ListedDelivery[]> {
  const query = db
    .selectFrom('webhook_deliveries')
    .select(['position', 'event_id', 'type', 'created_at', 'attempts', 'attempted_at', 'delivered_at'])
    .select(['status', 'duration_ms', 'error'])
    .where('endpoint_id', '=', endpointId)
    .where('position', 'is not', null)
    .$narrowType<{ position: number }>()
    .orderBy('position', 'desc')
    .limit(limit)
  return (before === undefined ? query : query.where('position', '<', before)).execute()
}

export const findDelivery = (
  db: Db,
  endpointId: string,
  position: number,
): Promise<QueuedDelivery | undefined> =>
  selectDeliveries(db, endpointId).where('position', '=', position).executeTakeFirst()
