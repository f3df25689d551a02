// SQL that adds events to the queues of webhook endpoints.
import { type Selectable, sql } from 'kysely'
import { executeBulk, insertBulk } from './bulk.ts'
import { nowIn } from './database-clock.ts'
import { type Placeholders, statement } from './statement.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type DeliveryRow = Selectable<Tables['webhook_deliveries']>
export type NewDelivery = Pick<
  DeliveryRow,
  'endpoint_id' | 'position' | 'event_id' | 'type' | 'body' | 'created_at'
>

export const selectDeliveries = (db: Db, endpointId: string) =>
  db.selectFrom('webhook_deliveries').selectAll().where('endpoint_id', '=', endpointId)

/** Those of the workspaces that have an enabled endpoint. */
export async function findWithEndpoints(tx: Tx, workspaceIds: readonly string[]): Promise<Set<string>> {
  const rows = await executeBulk<{ workspace_id: string }>(
    tx,
    { workspace_id: 'text' },
    workspaceIds.map((id) => [id]),
    `select distinct endpoint.workspace_id from input
     join webhook_endpoints as endpoint on endpoint.workspace_id = input.workspace_id
     where endpoint.disabled_at is null`,
  )
  return new Set(rows.map((row) => row.workspace_id))
}

interface Reservation {
  workspaceId: string
  type: string
  count: number
}

export interface Reserved {
  id: string
  /** The last of the reserved positions. */
  last: number
  slug: string
}

/**
 * Reserves positions in the queue of each endpoint that wants the type. Its row stays locked until the
 * transaction ends, so positions are in the order of commits, and no delivery can be committed before an
 * earlier one.
 */
export const reservePositions = (tx: Tx, { workspaceId, type, count }: Reservation): Promise<Reserved[]> =>
  reserve(tx, { workspaceId, count, pattern: `%,${type},%` })

const reserve = statement(
  (
    db: Tx,
    { workspaceId, count, pattern }: Placeholders<{ workspaceId: string; count: number; pattern: string }>,
  ) =>
    db
      .updateTable('webhook_endpoints')
      .set((row) => ({
        last_position: sql<number>`${row.ref('last_position')} + ${count}`,
        due_at: sql<number>`coalesce(${row.ref('due_at')}, ${nowIn(db)})`,
      }))
      .where('workspace_id', '=', workspaceId)
      .where('disabled_at', 'is', null)
      .where(({ eb, or }) => or([eb('events', 'is', null), sql<boolean>`events like ${pattern}`]))
      .returning(['id', 'last_position as last'])
      .returning(({ selectFrom }) =>
        selectFrom('workspaces')
          .select('slug')
          .whereRef('workspaces.id', '=', 'webhook_endpoints.workspace_id')
          .as('slug'),
      )
      .$narrowType<{ slug: string }>(),
)

const columns = {
  endpoint_id: 'text',
  position: 'bigint',
  event_id: 'text',
  type: 'text',
  body: 'text',
  created_at: 'bigint',
  attempts: 'bigint',
} as const

export async function insertDeliveries(tx: Tx, rows: readonly NewDelivery[]): Promise<void> {
  const values = rows.map((row) => [
    row.endpoint_id,
    row.position,
    row.event_id,
    row.type,
    row.body,
    row.created_at,
    0,
  ])
  await insertBulk({ db: tx, isDistributed: false }, 'webhook_deliveries', columns, values)
}
