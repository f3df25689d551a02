// SQL of alerts: edges that do not report, rejected uses of keys, and alerts to the operator.
import { type Selectable, sql } from 'kysely'
import { executeBulk } from '../engine/bulk.ts'
import { nowIn } from '../engine/clock.ts'
import { insertUnlessExists } from '../engine/rows.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { isActiveEdge } from '../keys/state.ts'

export type OperatorAlertRow = Selectable<Tables['operator_alerts']>

export interface SilentEdge {
  id: string
  name: string
  lastSyncAt: number
}

/** Active edges whose last sync was between the two durations ago. */
export const listSilentEdges = (
  db: Db,
  { silentMs, silentMaxMs, limit }: { silentMs: number; silentMaxMs: number; limit: number },
): Promise<SilentEdge[]> =>
  db
    .selectFrom('edge_sessions as session')
    .innerJoin('edges', 'edges.id', 'session.edge_id')
    .select(['edges.id', 'edges.name', sql<number>`session.last_sync_at`.as('lastSyncAt')])
    .where(isActiveEdge)
    .where(sql<boolean>`session.last_sync_at <= ${nowIn(db)} - ${silentMs}`)
    .where(sql<boolean>`session.last_sync_at > ${nowIn(db)} - ${silentMaxMs}`)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('operator_alerts')
            .select('kind')
            .where('kind', '=', 'edge-silent')
            .whereRef('subject_id', '=', 'edges.id')
            .where('dedup_key', '=', sql<string>`cast(session.last_sync_at as text)`),
        ),
      ),
    )
    .limit(limit)
    .execute()

/** Whether the edge has not synced since it was listed. */
export async function isStillSilent(db: Db, { id, lastSyncAt }: SilentEdge): Promise<boolean> {
  const row = await db
    .selectFrom('edge_sessions')
    .select('edge_id')
    .where('edge_id', '=', id)
    .where('last_sync_at', '=', lastSyncAt)
    .executeTakeFirst()
  return row !== undefined
}

/** Counts the tunnels that an edge has reported, by workspace. */
export async function countTunnelsByWorkspace(
  db: Db,
  edgeId: string,
  limit: number,
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('open_tunnels')
    .select((row) => ['workspace_id', row.fn.count('tunnel_id').distinct().as('count')])
    .where('edge_id', '=', edgeId)
    .where('close_reason', 'is', null)
    .groupBy('workspace_id')
    .orderBy('workspace_id')
    .limit(limit)
    .execute()
  return new Map(rows.map((row) => [row.workspace_id, Number(row.count)]))
}

export const findOperatorAlert = (
  db: Db,
  { kind, subject_id, dedup_key }: Pick<OperatorAlertRow, 'kind' | 'subject_id' | 'dedup_key'>,
): Promise<OperatorAlertRow | undefined> =>
  db
    .selectFrom('operator_alerts')
    .selectAll()
    .where('kind', '=', kind)
    .where('subject_id', '=', subject_id)
    .where('dedup_key', '=', dedup_key)
    .executeTakeFirst()

/** Returns false if the alert exists. */
export const insertOperatorAlert = (db: Tx, row: OperatorAlertRow): Promise<boolean> =>
  insertUnlessExists(db, 'operator_alerts', row, ['kind', 'subject_id', 'dedup_key'])

export interface RejectedKey {
  id: string
  workspaceId: string
  label: string
}

export const findKeysByHash = (db: Db, hashes: readonly string[]) =>
  executeBulk<RejectedKey & { hash: string }>(
    db,
    { hash: 'text' },
    hashes.map((hash) => [hash]),
    `select api_keys.hash, api_keys.id, api_keys.workspace_id as "workspaceId", api_keys.label
     from input join api_keys on api_keys.hash = input.hash`,
  )

/**
 * Adds the attempts of an hour, and returns the total of the latest hour. They are ignored if another node
 * has already written a later hour.
 */
export async function addRejections(
  db: Tx,
  { keyId, hour, attempts }: { keyId: string; hour: number; attempts: number },
): Promise<number> {
  const row = await db
    .insertInto('key_rejections')
    .values({ key_id: keyId, hour, attempts })
    .onConflict((conflict) =>
      conflict.column('key_id').doUpdateSet({
        hour: sql<number>`case when key_rejections.hour > excluded.hour
          then key_rejections.hour else excluded.hour end`,
        attempts: sql<number>`case when key_rejections.hour > excluded.hour then key_rejections.attempts
          when key_rejections.hour = excluded.hour then key_rejections.attempts + excluded.attempts
          else excluded.attempts end`,
      }),
    )
    .returning('attempts')
    .executeTakeFirstOrThrow()
  return Number(row.attempts)
}
