// SQL of the runs of edges that report tunnels, with the lease of each. Lock order of transactions on
// tunnels: sessions, then workspaces with a quota of tunnels, then names, then tunnels. Exceptions can
// deadlock, and the transaction is retried: admission locks the sessions of other edges whose lease has
// expired after the names; a user closes tunnels of such a workspace.
import { type RawBuilder, type Selectable, sql } from 'kysely'
import { isPostgres } from '../engine/bulk.ts'
import { nowIn } from '../engine/clock.ts'
import { type Placeholders, unflushedUpdate } from '../engine/statement.ts'
import type { Store, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { type ClosedTunnel, endUnreported } from './rows.ts'

type Columns = Selectable<Tables['edge_sessions']>

export interface SessionReport extends Pick<Columns, 'session' | 'sequence' | 'tunnels' | 'streams'> {
  previous: number
  version: string
  startedAt: number
}

interface RenewedSession {
  /** Whether tunnels have to be closed, or have other access rules. */
  hasInstructions: boolean
}

/** The sync follows the last one, and the lease has not expired. Undefined otherwise. */
export async function renewSession(
  store: Store,
  edgeId: string,
  report: SessionReport,
  leaseMs: number,
): Promise<RenewedSession | undefined> {
  const row = await store.updateUnflushed(renewal, { ...report, edgeId, leaseMs })
  return row && { hasInstructions: Boolean(row.hasInstructions) }
}

/** The same, in a transaction. Locks the session. */
export async function renewLockedSession(
  tx: Tx,
  edgeId: string,
  report: SessionReport,
  leaseMs: number,
): Promise<RenewedSession | undefined> {
  const [row] = await renewal.flushed(tx, { ...report, edgeId, leaseMs })
  return row && { hasInstructions: Boolean(row.hasInstructions) }
}

interface Renewal extends SessionReport {
  edgeId: string
  leaseMs: number
}

const renewal = unflushedUpdate((db, renewed: Placeholders<Renewal>) =>
  db
    .updateTable('edge_sessions')
    .set({ ...toColumns(renewed), ...leaseColumns(nowIn(db), renewed.leaseMs) })
    .where('edge_id', '=', renewed.edgeId)
    .where('session', '=', renewed.session)
    .where('sequence', '<', renewed.sequence)
    .where('sequence', '>=', renewed.previous)
    .where('lease_until', '>', nowIn(db))
    .returning(({ exists, selectFrom }) =>
      exists(
        selectFrom('open_tunnels')
          .select('id')
          .where('open_tunnels.edge_id', '=', renewed.edgeId)
          .where('instruction_sequence', 'is not', null),
      ).as('hasInstructions'),
    ),
)

const toColumns = <V extends SessionReport | Placeholders<SessionReport>>({
  sequence,
  tunnels,
  streams,
  version,
  startedAt,
}: V) => ({
  sequence,
  tunnels,
  streams,
  version,
  started_at: startedAt,
})

const leaseColumns = (now: RawBuilder<number>, leaseMs: number | RawBuilder<number>) => ({
  lease_until: sql<number>`${now} + ${leaseMs}`,
  last_sync_at: now,
})

export type LockedSession = Pick<Columns, 'session' | 'sequence' | 'lease_until'> & { now: number }

const lockedColumns = ['session', 'sequence', 'lease_until'] as const

/**
 * Locks the session of the edge. If there is none, inserts one that has expired and sorts before all others.
 */
export const lockSession = (tx: Tx, edgeId: string): Promise<LockedSession> =>
  tx
    .insertInto('edge_sessions')
    .values({ edge_id: edgeId, session: '', sequence: 0, lease_until: 0, tunnels: 0, streams: 0 })
    .onConflict((conflict) =>
      conflict.column('edge_id').doUpdateSet((row) => ({ session: row.ref('edge_sessions.session') })),
    )
    .returning([...lockedColumns, nowIn(tx).as('now')])
    .executeTakeFirstOrThrow()

/** For a claim: no sync of the edge is applied until the transaction ends, but other claims are. */
export function lockSessionShared(
  tx: Tx,
  edgeId: string,
  session: string,
): Promise<LockedSession | undefined> {
  const query = tx
    .selectFrom('edge_sessions')
    .select([...lockedColumns, nowIn(tx).as('now')])
    .where('edge_id', '=', edgeId)
    .where('session', '=', session)
  return (isPostgres(tx) ? query.forShare() : query).executeTakeFirst()
}

/** Replaces a locked session, and ends the tunnels of the one before, which it returns. */
export async function replaceSession(
  tx: Tx,
  edgeId: string,
  session: string,
  leaseMs: number,
): Promise<ClosedTunnel[]> {
  const closed = await endUnreported(tx, edgeId)
  await tx
    .updateTable('edge_sessions')
    .set({
      session,
      sequence: 0,
      tunnels: 0,
      streams: 0,
      version: null,
      started_at: null,
      last_sync_at: null,
      lease_until: sql<number>`${nowIn(tx)} + ${sql.lit(leaseMs)}`,
    })
    .where('edge_id', '=', edgeId)
    .execute()
  return closed
}

/** Renews the lease of a locked session. */
export async function updateSession(
  tx: Tx,
  edgeId: string,
  report: SessionReport,
  leaseMs: number,
): Promise<void> {
  await tx
    .updateTable('edge_sessions')
    .set({ ...toColumns(report), ...leaseColumns(nowIn(tx), leaseMs) })
    .where('edge_id', '=', edgeId)
    .execute()
}

/** The edge is revoked: its tunnels do not count any more. */
export async function endSession(tx: Tx, edgeId: string): Promise<void> {
  await tx.updateTable('edge_sessions').set({ lease_until: 0 }).where('edge_id', '=', edgeId).execute()
}

/**
 * Locks the sessions of the edges with open tunnels of this name, so that their syncs, which lock tunnels
 * several times, cannot deadlock with a transaction that locks all tunnels of the name.
 */
export async function lockSessionsByName(tx: Tx, workspaceId: string, name: string): Promise<void> {
  const sessions = tx
    .selectFrom('edge_sessions')
    .select('edge_id')
    .where('edge_id', 'in', (query) =>
      query
        .selectFrom('open_tunnels')
        .select('open_tunnels.edge_id')
        .where('workspace_id', '=', workspaceId)
        .where('name', '=', name),
    )
    .orderBy('edge_id')
  if (isPostgres(tx)) await sessions.forUpdate().execute()
}

/** Those whose lease has expired, locked in the order of their edges: none of them renews it meanwhile. */
export async function lockExpiredSessions(tx: Tx, edgeIds: readonly string[]): Promise<string[]> {
  if (edgeIds.length === 0) return []
  const expired = tx
    .selectFrom('edge_sessions')
    .select('edge_id')
    .where('edge_id', 'in', edgeIds)
    .where('lease_until', '<=', nowIn(tx))
    .orderBy('edge_id')
  const rows = await (isPostgres(tx) ? expired.forUpdate() : expired).execute()
  return rows.map((row) => row.edge_id)
}
