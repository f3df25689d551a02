// SQL of open tunnels as their edges report them.
import { type Selectable, sql } from 'kysely'
import { executeBulk, insertBulk } from '../engine/bulk.ts'
import type { Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { recordRecentKeys } from './holders.ts'
import { lockNamesOfTunnels } from './names.ts'

export type TunnelRow = Selectable<Tables['open_tunnels']>
export type TunnelPosition = Pick<TunnelRow, 'edge_id' | 'id'>

/** Columns that are returned for closed tunnels. */
const closedColumns = [
  'workspace_id',
  'edge_id',
  'id',
  'name',
  'type',
  'url',
  'key_id',
  'client_address',
  'opened_at',
  'tunnel_id',
] as const
export type ClosedTunnel = Pick<TunnelRow, (typeof closedColumns)[number]>
const closedList = closedColumns.join(', ')

/** The columns that an edge reports. */
export type ReportedRow = Omit<
  TunnelRow,
  'close_requested_at' | 'close_reason' | 'close_requested_by' | 'instruction_sequence'
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
  client_access: 'text',
  resume_hash: 'text',
  session_hash: 'text',
  tunnel_id: 'text',
  requests: 'bigint',
  bytes_in: 'bigint',
  bytes_out: 'bigint',
  streams: 'bigint',
} as const satisfies Record<keyof ReportedRow, 'text' | 'bigint'>

const columnNames = Object.keys(columns) as (keyof ReportedRow)[]

/** In a fixed order, so that all transactions lock rows in the same one. */
const toValues = (rows: readonly ReportedRow[]) =>
  rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)).map((row) => columnNames.map((column) => row[column]))

/** Returns the ids of those that were inserted: for others, the edge has a tunnel with this id. */
export async function insertTunnels(tx: Tx, rows: readonly ReportedRow[]): Promise<string[]> {
  const inserted = await executeBulk<{ id: string }>(
    tx,
    columns,
    toValues(rows),
    `insert into open_tunnels (${columnNames.join(', ')}) select * from input where true
     on conflict (edge_id, id) do nothing returning id`,
  )
  return inserted.map(({ id }) => id)
}

/**
 * Inserts rows, or updates their sequences, URLs and counters. A TCP tunnel keeps the URL with its assigned
 * port, whatever is reported.
 */
export async function writeTunnels(tx: Tx, rows: readonly ReportedRow[]): Promise<void> {
  await insertBulk(
    { db: tx, isDistributed: false },
    'open_tunnels',
    columns,
    toValues(rows),
    `(edge_id, id) do update set sequence = excluded.sequence,
       url = case when open_tunnels.type = 'tcp' then open_tunnels.url else excluded.url end,
       requests = excluded.requests, bytes_in = excluded.bytes_in, bytes_out = excluded.bytes_out,
       streams = excluded.streams`,
  )
}

/** The columns of a tunnel that never change, with the slug of its workspace. */
export type StoredTunnel = Pick<TunnelRow, 'id' | 'workspace_id' | 'name' | 'type' | 'key_id'> & {
  slug: string
}

/** Returns the tunnels that are stored for the edge. */
export const findTunnels = (tx: Tx, edgeId: string, ids: readonly string[]): Promise<StoredTunnel[]> =>
  executeBulk(
    tx,
    { edge_id: 'text', id: 'text' },
    ids.map((id) => [edgeId, id]),
    `select stored.id, stored.workspace_id, stored.name, stored.type, stored.key_id, workspaces.slug
     from input
     join open_tunnels as stored on stored.edge_id = input.edge_id and stored.id = input.id
     join workspaces on workspaces.id = stored.workspace_id`,
  )

/**
 * Deletes tunnels that the edge has closed. If a user has closed one, it is kept until a sync tells the edge,
 * because its client may have reconnected. Returns the tunnels that were open.
 */
export async function endTunnels(
  tx: Tx,
  edgeId: string,
  { ids, previous }: { ids: readonly string[]; previous: number },
): Promise<ClosedTunnel[]> {
  // `previous` is a column, because as part of the text it would make a new statement for each sync.
  const columns = { edge_id: 'text', id: 'text', previous: 'bigint' } as const
  const rows = ids.map((id) => [edgeId, id, previous])
  await lockNamesOfTunnels(
    tx,
    ids.map((id) => ({ edge_id: edgeId, id })),
  )
  const deleted = await executeBulk<ClosedTunnel & { close_reason: string | null }>(
    tx,
    columns,
    rows,
    `delete from open_tunnels where (edge_id, id) in (select edge_id, id from input)
       and (${isNotClosedByUser}
         or instruction_sequence > 0 and instruction_sequence <= (select max(previous) from input))
     returning ${closedList}, close_reason`,
  )
  const closed = deleted.filter(({ close_reason }) => close_reason !== 'ended')
  await recordRecentKeys(tx, edgeId, deleted)
  if (deleted.length === ids.length) return closed
  const marked = await executeBulk<ClosedTunnel>(
    tx,
    columns,
    rows,
    `update open_tunnels set close_reason = 'ended', instruction_sequence = 0
     where (edge_id, id) in (select edge_id, id from input) and close_reason = 'requested'
     returning ${closedList}`,
  )
  await recordRecentKeys(tx, edgeId, marked)
  return [...closed, ...marked]
}

/** The connections of these tunnels, at all edges, that were not reported as closed. */
export const findConnections = (
  tx: Tx,
  tunnels: readonly ClosedTunnel[],
): Promise<(TunnelPosition & Pick<TunnelRow, 'tunnel_id'>)[]> =>
  executeBulk(
    tx,
    { workspace_id: 'text', name: 'text', tunnel_id: 'text' },
    tunnels.map(({ workspace_id, name, tunnel_id }) => [workspace_id, name, tunnel_id]),
    `select distinct stored.edge_id, stored.id, stored.tunnel_id from input
     join open_tunnels as stored on stored.workspace_id = input.workspace_id
       and stored.name = input.name and stored.tunnel_id = input.tunnel_id
     where stored.close_reason is null or stored.close_reason <> 'ended'`,
  )

/** The names are locked. Returns the tunnels that were open. */
export async function deleteRows(tx: Tx, tunnels: readonly TunnelPosition[]): Promise<ClosedTunnel[]> {
  const deleted = await executeBulk<ClosedTunnel & { close_reason: string | null }>(
    tx,
    { edge_id: 'text', id: 'text' },
    tunnels.map(({ edge_id, id }) => [edge_id, id]),
    `delete from open_tunnels where (edge_id, id) in (select * from input)
     returning ${closedList}, close_reason`,
  )
  return deleted.filter(({ close_reason }) => close_reason !== 'ended')
}

/** The column is null for most rows, which `not in` alone would not match. */
const isNotClosedByUser = "(close_reason is null or close_reason not in ('requested', 'ended'))"

/** For a snapshot in one sync: ends the tunnels of the edge except these and those claimed later. */
export async function endOtherTunnels(
  tx: Tx,
  edgeId: string,
  { ids, sequence, previous }: { ids: { has(id: string): boolean }; sequence: number; previous: number },
): Promise<ClosedTunnel[]> {
  const stored = await tx
    .selectFrom('open_tunnels')
    .select('id')
    .where('edge_id', '=', edgeId)
    .where('sequence', '<=', sequence)
    .execute()
  const others = stored.filter(({ id }) => !ids.has(id)).map(({ id }) => id)
  return others.length > 0 ? endTunnels(tx, edgeId, { ids: others, previous }) : []
}

/**
 * Ends tunnels that were not reported since `sequence`, after the last sync of a snapshot that began with it,
 * or when a session is replaced. Returns the tunnels that were open.
 */
export async function endUnreported(
  tx: Tx,
  edgeId: string,
  sequence = Number.MAX_SAFE_INTEGER,
): Promise<ClosedTunnel[]> {
  const ending = tx.selectFrom('open_tunnels').select(['edge_id', 'id']).where('edge_id', '=', edgeId)
  await lockNamesOfTunnels(tx, await ending.where('sequence', '<', sequence).execute())
  const deleted = await tx
    .deleteFrom('open_tunnels')
    .where('edge_id', '=', edgeId)
    .where('sequence', '<', sequence)
    .where(sql<boolean>`${sql.raw(isNotClosedByUser)}`)
    .returning(closedColumns)
    .execute()
  const requested = await tx
    .selectFrom('open_tunnels')
    .select(closedColumns)
    .where('edge_id', '=', edgeId)
    .where('sequence', '<', sequence)
    .where('close_reason', '=', 'requested')
    .execute()
  await tx
    .updateTable('open_tunnels')
    .set({ close_reason: 'ended', sequence: 0, instruction_sequence: 0 })
    .where('edge_id', '=', edgeId)
    .where('sequence', '<', sequence)
    .execute()
  await recordRecentKeys(tx, edgeId, [...deleted, ...requested])
  return [...deleted, ...requested]
}

/** Counts the tunnels of each workspace at one edge, not their connections. */
export async function countTunnels(
  tx: Tx,
  edgeId: string,
  workspaceIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await tx
    .selectFrom('open_tunnels')
    .select((row) => ['workspace_id', row.fn.count('tunnel_id').distinct().as('count')])
    .where('edge_id', '=', edgeId)
    .where('workspace_id', 'in', workspaceIds)
    .groupBy('workspace_id')
    .execute()
  return new Map(rows.map((row) => [row.workspace_id, Number(row.count)]))
}
