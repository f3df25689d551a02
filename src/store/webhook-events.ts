// SQL that adds events to the queues of webhook endpoints.
import { type Selectable, sql } from 'kysely'
import { HOUR_MS } from '../time.ts'
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

/** Returns those that have an enabled endpoint. */
export async function filterWithEndpoints(tx: Tx, workspaceIds: readonly string[]): Promise<Set<string>> {
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

/** An endpoint is disabled when more deliveries than this wait. */
export const PENDING_MAX = 100_000
/** The same for one that has been failing for an hour. */
export const PENDING_FAILING_MAX = 10_000
const FAILING_MS = HOUR_MS

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
 * earlier one. An endpoint whose queue is full is disabled instead; it stays due, so that the node that
 * claims it notifies the owners.
 */
export async function reservePositions(
  tx: Tx,
  { workspaceId, type, count }: Reservation,
): Promise<Reserved[]> {
  const rows = await reserve(tx, { workspaceId, count, pattern: `%,${type},%` })
  return rows.filter(({ disabled_at }) => disabled_at === null)
}

const reserve = statement(
  (
    db: Tx,
    { workspaceId, count, pattern }: Placeholders<{ workspaceId: string; count: number; pattern: string }>,
  ) => {
    const now = nowIn(db)
    const isFull = sql<boolean>`last_position - next_position + 1 + ${count} > case
      when failing_since <= ${now} - ${sql.lit(FAILING_MS)} then ${sql.lit(PENDING_FAILING_MAX)}
      else ${sql.lit(PENDING_MAX)} end`
    return db
      .updateTable('webhook_endpoints')
      .set({
        last_position: sql<number>`case when ${isFull} then last_position else last_position + ${count} end`,
        due_at: sql<number>`case when ${isFull} then ${now} else coalesce(due_at, ${now}) end`,
        disabled_at: sql<number | null>`case when ${isFull} then ${now} end`,
        disabled_reason: sql<string | null>`case when ${isFull} then 'backlog' end`,
        claim: sql<string | null>`case when ${isFull} then null else claim end`,
      })
      .where('workspace_id', '=', workspaceId)
      .where('disabled_at', 'is', null)
      .where(({ eb, or }) => or([eb('events', 'is', null), sql<boolean>`events like ${pattern}`]))
      .returning(['id', 'last_position as last', 'disabled_at'])
      .returning(({ selectFrom }) =>
        selectFrom('workspaces')
          .select('slug')
          .whereRef('workspaces.id', '=', 'webhook_endpoints.workspace_id')
          .as('slug'),
      )
      .$narrowType<{ slug: string }>()
  },
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
