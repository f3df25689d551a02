// SQL of abandoned tunnels: those of edges that are gone.
import { sql } from 'kysely'
import { statementTimeIn } from '../engine/clock.ts'
import type { Db, Tx } from '../engine/store.ts'
import { moveCountsOfEdges } from './counts.ts'
import { lockExpiredSessions } from './edge-sessions.ts'
import { HELD_LONGER_MS } from './holders.ts'
import { lockNamesOfTunnels } from './names.ts'
import { deleteRows } from './rows.ts'

const ABANDONED_EDGES_MAX = 20

/** Edges with tunnels whose lease expired more than `graceMs` ago. */
const abandonedEdges = (db: Db, graceMs: number) =>
  db
    .selectFrom('edge_sessions as session')
    .select('session.edge_id')
    .where('session.lease_until', '<', sql<number>`${statementTimeIn(db)} - ${sql.lit(graceMs)}`)
    // The limit keeps the planner from turning the lookups into a join that scans the table.
    .where(({ eb, selectFrom }) =>
      eb(
        selectFrom('open_tunnels as tunnel')
          .select('tunnel.id')
          .whereRef('tunnel.edge_id', '=', 'session.edge_id')
          .limit(1),
        'is not',
        null,
      ),
    )

async function findAbandonedEdges(db: Db, graceMs: number): Promise<string[]> {
  const rows = await abandonedEdges(db, graceMs).limit(ABANDONED_EDGES_MAX).execute()
  return rows.map((row) => row.edge_id)
}

/**
 * Moves counts of names at edges that do not count without a lease, and have had none for as long as a lease
 * may be held. Returns for how many tunnels, at most `size`.
 */
export async function moveAbandonedCounts(tx: Tx, size: number): Promise<number> {
  const rows = await abandonedEdges(tx, HELD_LONGER_MS)
    .where('session.acknowledged_sequence', 'is not', null)
    .execute()
  const expired = await lockExpiredSessions(
    tx,
    rows.map((row) => row.edge_id),
  )
  return expired.length === 0 ? 0 : moveCountsOfEdges(tx, expired, size)
}

/** Deletes at most `size` tunnels, unless their edge is back. Returns how many, and those that were open. */
export async function deleteAbandoned(tx: Tx, graceMs: number, size: number) {
  const expired = await lockExpiredSessions(tx, await findAbandonedEdges(tx, graceMs))
  if (expired.length === 0) return { deleted: 0, closed: [] }
  const abandoned = await tx
    .selectFrom('open_tunnels')
    .select(['edge_id', 'id'])
    .where('edge_id', 'in', expired)
    .orderBy('edge_id')
    .orderBy('id')
    .limit(size)
    .execute()
  if (abandoned.length === 0) return { deleted: 0, closed: [] }
  await lockNamesOfTunnels(tx, abandoned)
  const closed = await deleteRows(tx, abandoned)
  return { deleted: abandoned.length, closed }
}

/** Counts the tunnels of the first abandoned edges. */
export async function countAbandoned(db: Db, graceMs: number) {
  const edgeIds = await findAbandonedEdges(db, graceMs)
  if (edgeIds.length === 0) return { rows: 0, oldest: null }
  const { rows, oldest } = await db
    .selectFrom('open_tunnels')
    .select((row) => [row.fn.countAll().as('rows'), row.fn.min('opened_at').as('oldest')])
    .where('edge_id', 'in', edgeIds)
    .executeTakeFirstOrThrow()
  return { rows: Number(rows), oldest: oldest as number | null }
}
