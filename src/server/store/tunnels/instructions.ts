// SQL of instructions to edges about their open tunnels: to close them, or to apply other access rules. The
// column `instruction_sequence` is null without an instruction, 0 if it was not sent yet, and otherwise the
// sequence of the sync whose response contained it.
import { executeBulk, isPostgres } from '../engine/bulk.ts'
import type { Tx } from '../engine/store.ts'
import { type NamedTunnel, openTunnels } from './lists.ts'
import type { TunnelPosition, TunnelRow } from './rows.ts'

const instructedColumns = [
  'id',
  'instruction_sequence',
  'workspace_id',
  'name',
  'session_hash',
  'close_reason',
  'close_requested_by',
] as const
export type InstructedTunnel = Pick<TunnelRow, (typeof instructedColumns)[number]>

/** Locks tunnels with an instruction, in the order of their ids. */
export function lockInstructed(tx: Tx, edgeId: string, limit: number): Promise<InstructedTunnel[]> {
  const instructed = tx
    .selectFrom('open_tunnels')
    .select(instructedColumns)
    .where('edge_id', '=', edgeId)
    .where('instruction_sequence', 'is not', null)
    .orderBy('id')
    .limit(limit)
  return (isPostgres(tx) ? instructed.forUpdate() : instructed).execute()
}

/** `sequence` is the sync whose response has the instruction; null after the edge has followed it. */
export async function setInstructed(
  tx: Tx,
  edgeId: string,
  ids: readonly string[],
  sequence: number | null,
): Promise<void> {
  if (ids.length === 0) return
  await tx
    .updateTable('open_tunnels')
    .set({ instruction_sequence: sequence })
    .where('edge_id', '=', edgeId)
    .where('id', 'in', ids)
    .execute()
}

/** Instructs edges to apply changed rules of a name with their next sync. Returns these edges. */
export async function instructByName(tx: Tx, workspaceId: string, name: string): Promise<string[]> {
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
    .set({ instruction_sequence: 0 })
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .execute()
  return [...new Set(rows.map((row) => row.edge_id))]
}

/** An open tunnel, with the user whose personal key opened it; undefined if the workspace has no such one. */
export const findTunnel = (
  tx: Tx,
  workspaceId: string,
  tunnelId: string,
): Promise<{ name: string; keyUserId: string | null } | undefined> =>
  openTunnels(tx)
    .leftJoin('api_keys', 'api_keys.id', 'tunnel.key_id')
    .select(['tunnel.name', 'api_keys.user_id as keyUserId'])
    .where('tunnel.workspace_id', '=', workspaceId)
    .where('tunnel.tunnel_id', '=', tunnelId)
    .limit(1)
    .executeTakeFirst()

/**
 * Instructs edges to close all connections of a tunnel whose name is locked. Returns these edges; none if
 * that was requested before.
 */
export async function requestClose(
  tx: Tx,
  { workspaceId, tunnelId, name }: NamedTunnel,
  { at, by }: { at: number; by: string },
): Promise<string[]> {
  const rows = await tx
    .updateTable('open_tunnels')
    .set({
      close_requested_at: at,
      close_requested_by: by,
      close_reason: 'requested',
      instruction_sequence: 0,
    })
    .where('workspace_id', '=', workspaceId)
    .where('name', '=', name)
    .where('tunnel_id', '=', tunnelId)
    .where('close_reason', 'is', null)
    .returning('edge_id')
    .execute()
  return [...new Set(rows.map((row) => row.edge_id))]
}

const positionColumns = { edge_id: 'text', id: 'text' } as const

const toPositions = (tunnels: readonly TunnelPosition[]) => tunnels.map(({ edge_id, id }) => [edge_id, id])

/** Called when the clients of the tunnels have moved to another edge. Their names are locked. */
export const markMoved = (tx: Tx, tunnels: readonly TunnelPosition[], at: number): Promise<unknown> =>
  executeBulk(
    tx,
    { ...positionColumns, at: 'bigint' },
    toPositions(tunnels).map((position) => [...position, at]),
    `update open_tunnels
     set close_requested_at = coalesce(close_requested_at, input.at), close_reason = 'moved',
       instruction_sequence = 0
     from input where open_tunnels.edge_id = input.edge_id and open_tunnels.id = input.id`,
  )
