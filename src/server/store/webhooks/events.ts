// SQL that adds events to the queues of webhook endpoints. It locks no endpoint, so that a transaction that
// records an event, such as a revocation, never waits for another one.
import { type Selectable, sql } from 'kysely'
import { executeBulk, isOneOf, listParameter } from '../engine/bulk.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

export type DeliveryRow = Selectable<Tables['webhook_deliveries']>

export interface EventReceiver {
  id: string
  workspace_id: string
  /** The slug of the workspace. */
  slug: string
  /** Selected types, each between commas; null for all. */
  events: string | null
  /** Deliveries in its queue. */
  waiting: number
}

/** The enabled endpoints of the workspaces. */
export const listReceivers = (tx: Tx, workspaceIds: readonly string[]): Promise<EventReceiver[]> =>
  selectReceivers(tx, { workspaceIds: listParameter(tx, workspaceIds) })

const selectReceivers = statement((db: Tx, { workspaceIds }: Placeholders<{ workspaceIds: string }>) =>
  db
    .selectFrom('webhook_endpoints as endpoint')
    .select(['endpoint.id', 'endpoint.workspace_id', 'endpoint.events'])
    .select(sql<number>`endpoint.last_position - endpoint.next_position + 1`.as('waiting'))
    .select(({ selectFrom }) =>
      selectFrom('workspaces')
        .select('slug')
        .whereRef('workspaces.id', '=', 'endpoint.workspace_id')
        .$asScalar()
        .$notNull()
        .as('slug'),
    )
    .where(isOneOf(db, 'endpoint.workspace_id', workspaceIds))
    .where('endpoint.disabled_at', 'is', null),
)

export type NewDelivery = Pick<
  DeliveryRow,
  'endpoint_id' | 'id' | 'event_id' | 'type' | 'body' | 'created_at'
>

const columns = {
  endpoint_id: 'text',
  id: 'text',
  number: 'bigint',
  event_id: 'text',
  type: 'text',
  body: 'text',
  created_at: 'bigint',
} as const

/**
 * Inserts deliveries without positions. Their sequence is higher than that of every committed delivery to the
 * endpoint without a position, so a later change gets a later position, whatever the clocks of nodes say.
 */
export async function insertDeliveries(tx: Tx, rows: readonly NewDelivery[]): Promise<void> {
  await executeBulk(
    tx,
    columns,
    rows.map((row, index) => [
      row.endpoint_id,
      row.id,
      index + 1,
      row.event_id,
      row.type,
      row.body,
      row.created_at,
    ]),
    // Once for each endpoint. For each row, PostgreSQL would read all rows that the statement has inserted.
    `, latest (queue, sequence) as materialized (
       select written.endpoint_id, (
         select max(earlier.sequence) from webhook_deliveries as earlier
         where earlier.endpoint_id = written.endpoint_id and earlier.position is null
       ) from (select distinct endpoint_id from input) as written
     )
     insert into webhook_deliveries (endpoint_id, id, sequence, event_id, type, body, created_at, attempts)
     select endpoint_id, id, number + coalesce(latest.sequence, 0), event_id, type, body, created_at, 0
     from input join latest on latest.queue = input.endpoint_id`,
  )
}

/** Selects deliveries in the queue and the log of the endpoint. */
export const selectDeliveries = (db: Db, endpointId: string) =>
  db
    .selectFrom('webhook_deliveries')
    .selectAll()
    .where('endpoint_id', '=', endpointId)
    .where('position', 'is not', null)
    .$narrowType<{ position: number }>()

export type QueuedDelivery = DeliveryRow & { position: number }
