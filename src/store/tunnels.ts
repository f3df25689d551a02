// SQL of open tunnels. A row counts only while the lease of its edge is valid: every query here that is not by
// one edge joins its session.
import { type Selectable, sql } from 'kysely'
import { deleteBulk, executeBulk, insertBulk, isPostgres } from './bulk.ts'
import { nowIn } from './database-clock.ts'
import { lockExpiredSessions } from './edge-sessions.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type TunnelRow = Selectable<Tables['open_tunnels']>

/** What an edge reports. */
export type ReportedRow = Omit<
  TunnelRow,
  'close_requested_at' | 'close_reason' | 'close_requested_by' | 'notice'
>

const columns = {
  edge_id: 'text',
  id: 'text',
  sequence: 'bigint',
  workspace_id: 'text',
  name: 'text',
  type: 'text',
  pool: 'bigint',
  url: 'text',
  key_id: 'text',
  client_address: 'text',
  client_version: 'text',
  opened_at: 'bigint',
  resume_hash: 'text',
  requests: 'bigint',
  bytes_in: 'bigint',
  bytes_out: 'bigint',
  streams: 'bigint',
} as const satisfies Record<keyof ReportedRow, 'text' | 'bigint'>

const columnNames = Object.keys(columns) as (keyof ReportedRow)[]

/** Inserts rows, or updates their URLs and counters. Sorted, so that two transactions lock rows in the same order. */
export async function writeTunnels(tx: Tx, rows: readonly ReportedRow[]): Promise<void> {
  const values = rows
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((row) => columnNames.map((column) => row[column]))
  await insertBulk(
    { db: tx, isDistributed: false },
    'open_tunnels',
    columns,
    values,
    `(edge_id, id) do update set url = excluded.url, requests = excluded.requests, bytes_in = excluded.bytes_in,
     bytes_out = excluded.bytes_out, streams = excluded.streams`,
  )
}

export interface ExistingTunnel {
  id: string
  workspace_id: string
}

/** Those of the tunnels that are stored for the edge. */
export const findTunnels = (tx: Tx, edgeId: string, ids: readonly string[]): Promise<ExistingTunnel[]> =>
  executeBulk(
    tx,
    { edge_id: 'text', id: 'text' },
    ids.map((id) => [edgeId, id]),
    `select stored.id, stored.workspace_id from input
     join open_tunnels as stored on stored.edge_id = input.edge_id and stored.id = input.id`,
  )

export const deleteTunnels = (tx: Tx, edgeId: string, ids: readonly string[]): Promise<void> =>
  deleteRows(
    tx,
    ids.map((id) => ({ edge_id: edgeId, id })),
  )

export async function deleteRows(tx: Tx, tunnels: readonly TunnelPosition[]): Promise<void> {
  const rows = tunnels.map(({ edge_id, id }) => [edge_id, id])
  await deleteBulk({ db: tx, isDistributed: false }, 'open_tunnels', { edge_id: 'text', id: 'text' }, rows)
}

/** For a snapshot: deletes all tunnels of the edge except these, and those that were claimed after it. */
export async function deleteOtherTunnels(
  tx: Tx,
  edgeId: string,
  { ids, sequence }: { ids: { has(id: string): boolean }; sequence: number },
): Promise<void> {
  const stored = await tx
    .selectFrom('open_tunnels')
    .select('id')
    .where('edge_id', '=', edgeId)
    .where('sequence', '<=', sequence)
    .execute()
  const others = stored.filter(({ id }) => !ids.has(id)).map(({ id }) => id)
  if (others.length > 0) await deleteTunnels(tx, edgeId, others)
}

/** Of each workspace, at one edge. */
export async function countTunnels(
  tx: Tx,
  edgeId: string,
  workspaceIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await tx
    .selectFrom('open_tunnels')
    .select((row) => ['workspace_id', row.fn.countAll().as('count')])
    .where('edge_id', '=', edgeId)
    .where('workspace_id', 'in', workspaceIds)
    .groupBy('workspace_id')
    .execute()
  return new Map(rows.map((row) => [row.workspace_id, Number(row.count)]))
}

export type NoticedTunnel = Pick<
  TunnelRow,
  'id' | 'workspace_id' | 'name' | 'notice' | 'close_reason' | 'close_requested_by'
>

/** Tunnels of the edge that have a notice, locked in the order of their ids. */
export function lockNoticed(tx: Tx, edgeId: string, limit: number): Promise<NoticedTunnel[]> {
  const noticed = tx
    .selectFrom('open_tunnels')
    .select(['id', 'workspace_id', 'name', 'notice', 'close_reason', 'close_requested_by'])
    .where('edge_id', '=', edgeId)
    .where('notice', 'is not', null)
    .orderBy('id')
    .limit(limit)
  return (isPostgres(tx) ? noticed.forUpdate() : noticed).execute()
}

export async function setNotice(
  tx: Tx,
  edgeId: string,
  ids: readonly string[],
  notice: number | null,
): Promise<void> {
  if (ids.length === 0) return
  await tx
    .updateTable('open_tunnels')
    .set({ notice })
    .where('edge_id', '=', edgeId)
    .where('id', 'in', ids)
    .execute()
}

/** The edges of the open tunnels with this name, whose syncs will have the rules of the name. */
export async function noticeName(tx: Tx, workspaceId: string, name: string): Promise<string[]> {
  const open = tx
    .selectFrom('open_tunnels')
    .select(['edge_id', 'id'])
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .orderBy('edge_id')
    .orderBy('id')
  const rows = await (isPostgres(tx) ? open.forUpdate() : open).execute()
  if (rows.length === 0) return []
  await tx
    .updateTable('open_tunnels')
    .set({ notice: 0 })
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .execute()
  return [...new Set(rows.map((row) => row.edge_id))]
}

/** Marks the open tunnel as to be closed; undefined if the workspace has none with this id. */
export async function requestClose(
  tx: Tx,
  workspaceId: string,
  id: string,
  { at, by }: { at: number; by: string },
): Promise<{ edgeId: string; name: string; isNew: boolean } | undefined> {
  const found = await openTunnels(tx)
    .select(['tunnel.edge_id', 'tunnel.name', 'tunnel.close_requested_at'])
    .where('tunnel.workspace_id', '=', workspaceId)
    .where('tunnel.id', '=', id)
    .executeTakeFirst()
  if (!found) return undefined
  const { edge_id: edgeId, name } = found
  const updated = await tx
    .updateTable('open_tunnels')
    .set({ close_requested_at: at, close_requested_by: by, close_reason: 'requested', notice: 0 })
    .where('edge_id', '=', edgeId)
    .where('id', '=', id)
    .where('close_requested_at', 'is', null)
    .executeTakeFirst()
  return { edgeId, name, isNew: updated.numUpdatedRows === 1n }
}

/** Null for most rows, so `<>` would not do. */
const hasNotMoved = sql<boolean>`(close_reason is null or close_reason <> 'moved')`

const openTunnels = (db: Db) =>
  db
    .selectFrom('open_tunnels as tunnel')
    .innerJoin('edge_sessions as session', 'session.edge_id', 'tunnel.edge_id')
    .where('session.lease_until', '>', nowIn(db))
    .where(hasNotMoved)

/** With what a list shows of the key, the edge and the workspace. */
const describedTunnels = (db: Db) =>
  openTunnels(db)
    .innerJoin('edges', 'edges.id', 'tunnel.edge_id')
    .innerJoin('workspaces', 'workspaces.id', 'tunnel.workspace_id')
    .leftJoin('api_keys', 'api_keys.id', 'tunnel.key_id')
    .selectAll('tunnel')
    .select(['edges.name as edgeName', 'workspaces.slug', 'api_keys.label as keyLabel'])

/** By name. */
export const listTunnels = (db: Db, workspaceId: string, limit: number) =>
  describedTunnels(db)
    .where('tunnel.workspace_id', '=', workspaceId)
    .orderBy('tunnel.name')
    .orderBy('tunnel.id')
    .limit(limit)
    .execute()

export type DescribedTunnel = Awaited<ReturnType<typeof listTunnels>>[number]

export type TunnelPosition = Pick<TunnelRow, 'edge_id' | 'id'>

/** Across workspaces: for the operator only. By edge. */
export function listAllTunnels(
  db: Db,
  { after, limit }: { after: TunnelPosition | undefined; limit: number },
): Promise<DescribedTunnel[]> {
  const query = describedTunnels(db).orderBy('tunnel.edge_id').orderBy('tunnel.id').limit(limit)
  return (
    after
      ? query.where(({ eb, refTuple, tuple }) =>
          eb(refTuple('tunnel.edge_id', 'tunnel.id'), '>', tuple(after.edge_id, after.id)),
        )
      : query
  ).execute()
}

/** Of a workspace, by edge or by name. */
export async function countOpen(
  db: Db,
  workspaceId: string,
  by: 'edge_id' | 'name',
): Promise<Map<string, number>> {
  const rows = await openTunnels(db)
    .select((row) => [`tunnel.${by} as group`, row.fn.countAll().as('count')])
    .where('tunnel.workspace_id', '=', workspaceId)
    .groupBy(`tunnel.${by}`)
    .execute()
  return new Map(rows.map(({ group, count }) => [group, Number(count)]))
}

const ABANDONED_EDGES_MAX = 20

/** Edges with tunnels whose lease has expired so long ago. There is one session for each edge. */
async function findAbandonedEdges(db: Db, graceMs: number): Promise<string[]> {
  const rows = await db
    .selectFrom('edge_sessions as session')
    .select('session.edge_id')
    .where('session.lease_until', '<', sql<number>`${nowIn(db)} - ${sql.lit(graceMs)}`)
    // With a limit, so that the planner cannot turn the lookups into a join that scans the table.
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
    .limit(ABANDONED_EDGES_MAX)
    .execute()
  return rows.map((row) => row.edge_id)
}

/** At most `size`. Returns how many. An edge that is back in this moment keeps its tunnels. */
export async function deleteAbandoned(tx: Tx, graceMs: number, size: number): Promise<number> {
  const expired = await lockExpiredSessions(tx, await findAbandonedEdges(tx, graceMs))
  if (expired.length === 0) return 0
  const abandoned = await tx
    .selectFrom('open_tunnels')
    .select(['edge_id', 'id'])
    .where('edge_id', 'in', expired)
    .orderBy('edge_id')
    .orderBy('id')
    .limit(size)
    .execute()
  if (abandoned.length > 0) await deleteRows(tx, abandoned)
  return abandoned.length
}

/** Of the first edges that are found. */
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
