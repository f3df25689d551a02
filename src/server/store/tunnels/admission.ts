// SQL for the admission of a tunnel: the state of its key, and tunnels of other edges with its name.
import { executeBulk } from '../engine/bulk.ts'
import { nowText } from '../engine/clock.ts'
import type { Tx } from '../engine/store.ts'
import { rowState, type StateColumns, stateColumns } from '../keys/state.ts'
import { type NameId, nameColumns, nameKey } from './names.ts'

/** A tunnel with the name of one that is about to be opened. */
export interface OtherTunnel extends NameId {
  edge_id: string
  id: string
  type: 'http' | 'tcp'
  pool: number
  resume_hash: string | null
  session_hash: string | null
  tunnel_id: string
  opened_at: number
  close_reason: 'requested' | 'ended' | null
  close_requested_by: string | null
  isLive: boolean
}

/**
 * Tunnels of other edges with these names, except those that have moved. Includes tunnels of edges whose
 * lease has expired, and those of the edge itself that a user has closed.
 */
export async function findOtherTunnels(
  tx: Tx,
  edgeId: string,
  names: readonly NameId[],
): Promise<OtherTunnel[]> {
  // Each name once: many tunnels may share it.
  const unique = new Map(names.map((name) => [nameKey(name), name]))
  const rows = await executeBulk<OtherTunnel>(
    tx,
    { ...nameColumns, edge_id: 'text' },
    [...unique.values()].map(({ workspace_id, name }) => [workspace_id, name, edgeId]),
    `select tunnel.workspace_id, tunnel.name, tunnel.edge_id, tunnel.id, tunnel.type, tunnel.pool,
       tunnel.resume_hash, tunnel.session_hash, tunnel.tunnel_id, tunnel.opened_at, tunnel.close_reason,
       tunnel.close_requested_by, session.lease_until > ${nowText(tx)} as "isLive"
     from input
     join open_tunnels as tunnel on tunnel.workspace_id = input.workspace_id and tunnel.name = input.name
     join edge_sessions as session on session.edge_id = tunnel.edge_id
     where tunnel.close_reason in ('requested', 'ended')
       or (tunnel.edge_id <> input.edge_id and tunnel.close_reason is null)`,
  )
  return rows.map((row) => ({ ...row, isLive: Boolean(row.isLive) }))
}

interface ResolvedKey {
  key_id: string
  workspace_id: string
  slug: string
  provisioned_at: number | null
  archived_at: number | null
  edge_group: string
  quota_tunnels: number | null
  usage_level: string | null
  usage_level_until: number | null
  isActive: boolean
}

/** The workspace and the state of each key that exists. */
export async function resolveKeys(tx: Tx, keyIds: readonly string[]): Promise<ResolvedKey[]> {
  const rows = await executeBulk<Omit<ResolvedKey, 'isActive'> & StateColumns>(
    tx,
    { key_id: 'text' },
    keyIds.map((keyId) => [keyId]),
    `select input.key_id, workspaces.id as workspace_id, workspaces.slug, workspaces.provisioned_at,
       workspaces.archived_at, workspaces.edge_group, workspaces.quota_tunnels, workspaces.usage_level, workspaces.usage_level_until,
       ${stateColumns.map((column) => `api_keys.${column}`).join(', ')}, ${nowText(tx)} as now
     from input join api_keys on api_keys.id = input.key_id
     join workspaces on workspaces.id = api_keys.workspace_id`,
  )
  return rows.map((row) => ({ ...row, isActive: rowState(row) === 'active' }))
}
