// SQL of sessions: the runs of edges that report tunnels, each with a lease. Lock order of transactions on
// tunnels: sessions, then workspaces with a quota of tunnels, then names, then tunnels. Two exceptions can
// deadlock, and are retried: admission locks expired sessions of other edges after the names, and a user
// closes tunnels of a workspace with such a quota.
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
  peerAddress: string | null
  /** The position in the change log up to which the edge has applied it; null if it does not say. */
  appliedSequence: number | null
  appliedChecksum: string | null
}

/**
 * Renews the lease; undefined if it has expired, or if the sync does not follow the last one.
 * `hasInstructions` is whether the edge has to close tunnels or apply other access rules. The position is
 * that of the head of the change log. A crash of the database may undo the renewal: see `HELD_LONGER_MS`.
 */
export const renewSession = (store: Store, edgeId: string, report: SessionReport, leaseMs: number) =>
  store.updateUnflushed(renewal, { ...report, edgeId, leaseMs })

/** Like `renewSession`, in a transaction that locks the session. */
export const renewLockedSession = async (tx: Tx, edgeId: string, report: SessionReport, leaseMs: number) =>
  (await renewal.flushed(tx, { ...report, edgeId, leaseMs }))[0]

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
    .returning(({ exists, selectFrom }) => {
      const head = selectFrom('change_log_head as head').where('head.id', '=', 1)
      return [
        exists(
          selectFrom('open_tunnels')
            .select('id')
            .where('open_tunnels.edge_id', '=', renewed.edgeId)
            .where('instruction_sequence', 'is not', null),
        ).as('hasInstructions'),
        head.select('head.sequence').$asScalar().$notNull().as('sequence'),
        head.select('head.checksum').$asScalar().$notNull().as('checksum'),
      ]
    }),
)

const toColumns = <V extends SessionReport | Placeholders<SessionReport>>(report: V) => ({
  sequence: report.sequence,
  tunnels: report.tunnels,
  streams: report.streams,
  version: report.version,
  started_at: report.startedAt,
  peer_address: report.peerAddress,
  acknowledged_sequence: report.appliedSequence,
  acknowledged_checksum: report.appliedChecksum,
})

const leaseColumns = (now: RawBuilder<number>, leaseMs: number | RawBuilder<number>) => ({
  lease_until: sql<number>`${now} + ${leaseMs}`,
  last_sync_at: now,
})

export type LockedSession = Pick<Columns, 'session' | 'sequence' | 'lease_until'> & { now: number }

const lockedColumns = ['session', 'sequence', 'lease_until'] as const

/** Locks the session of the edge. If there is none, inserts an expired one that sorts before all others. */
export const lockSession = (tx: Tx, edgeId: string): Promise<LockedSession> =>
  tx
    .insertInto('edge_sessions')
    .values({ edge_id: edgeId, session: '', sequence: 0, lease_until: 0, tunnels: 0, streams: 0 })
    .onConflict((conflict) =>
      conflict.column('edge_id').doUpdateSet((row) => ({ session: row.ref('edge_sessions.session') })),
    )
    .returning([...lockedColumns, nowIn(tx).as('now')])
    .executeTakeFirstOrThrow()

/** For a claim: until the transaction ends, syncs of the edge wait, but other claims do not. */
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

/** The process that had the lease may still exist, and carry traffic until the lease has expired. */
const endedLease = {
  previous_lease_until: sql<number>`case when acknowledged_sequence is null then previous_lease_until
    else lease_until end`,
  acknowledged_sequence: null,
  acknowledged_checksum: null,
}

/** Replaces a locked session. Ends and returns the tunnels of the previous session. */
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
      peer_address: null,
      last_sync_at: null,
      lease_until: sql<number>`${nowIn(tx)} + ${sql.lit(leaseMs)}`,
      ...endedLease,
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

/** For a revoked edge, whose tunnels no longer count. */
export async function endSession(tx: Tx, edgeId: string): Promise<void> {
  await tx
    .updateTable('edge_sessions')
    .set({ lease_until: 0, ...endedLease })
    .where('edge_id', '=', edgeId)
    .execute()
}

/**
 * Locks the sessions of edges with open tunnels of this name, so that their syncs, which lock tunnels several
 * times, cannot deadlock with a transaction that locks all tunnels of the name.
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

/** Locks the sessions whose lease has expired, in the order of their edges, so that none can renew it. */
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
