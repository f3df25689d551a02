// SQL of instructions to edges about their open tunnels: to close them, or to apply other access rules. The
// column `instruction_sequence` is null without an instruction, 0 if it was not sent yet, and otherwise the
// sequence of the sync whose response contained it.
import { executeBulk, isPostgres } from '../engine/bulk.ts'
import type { Tx } from '../engine/store.ts'
import { openTunnels } from './lists.ts'
import type { TunnelPosition, TunnelRow } from './rows.ts'

const closingColumns = ['workspace_id', 'name', 'resume_hash', 'close_reason', 'close_requested_by'] as const
const instructedColumns = ['id', 'instruction_sequence', ...closingColumns] as const

type ClosingTunnel = Pick<TunnelRow, (typeof closingColumns)[number]>
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

/**
 * Instructs the edge to close an open tunnel. `isNew` is false if that was requested before. Undefined if the
 * workspace has no such tunnel, or its client moves to another edge at the same time.
 */
export async function requestClose(
  tx: Tx,
  workspaceId: string,
  id: string,
  { at, by }: { at: number; by: string },
): Promise<{ edgeId: string; name: string; isNew: boolean } | undefined> {
  const find = () =>
    openTunnels(tx)
      .select(['tunnel.edge_id as edgeId', 'tunnel.name', 'tunnel.close_reason'])
      .where('tunnel.workspace_id', '=', workspaceId)
      .where('tunnel.id', '=', id)
      .executeTakeFirst()
  const found = await find()
  if (!found) return undefined
  const { edgeId, name } = found
  const updated = await tx
    .updateTable('open_tunnels')
    .set({
      close_requested_at: at,
      close_requested_by: by,
      close_reason: 'requested',
      instruction_sequence: 0,
    })
    .where('edge_id', '=', edgeId)
    .where('id', '=', id)
    .where('close_reason', 'is', null)
    .executeTakeFirst()
  if (updated.numUpdatedRows === 1n) return { edgeId, name, isNew: true }
  return (await find()) && { edgeId, name, isNew: false }
}

const positionColumns = { edge_id: 'text', id: 'text' } as const

const toPositions = (tunnels: readonly TunnelPosition[]) => tunnels.map(({ edge_id, id }) => [edge_id, id])

/** Reads why tunnels have to be closed, and locks them, so that no one closes them in the meantime. */
export const lockCloseReasons = (tx: Tx, tunnels: readonly TunnelPosition[]): Promise<ClosingTunnel[]> =>
  executeBulk(
    tx,
    positionColumns,
    toPositions(tunnels),
    `select ${closingColumns.join(', ')} from open_tunnels
     where (edge_id, id) in (select edge_id, id from input)
     order by edge_id, id ${isPostgres(tx) ? 'for update' : ''}`,
  )

/** Called when the clients of the tunnels have moved to another edge. The tunnels are locked. */
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
