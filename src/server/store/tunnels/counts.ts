// SQL of counts: which edge counts a name in `peakTunnels`. The reports of edges are added, so one does.
import { MINUTE_MS } from '../../../lib/time.ts'
import { executeBulk } from '../engine/bulk.ts'
import { nowText } from '../engine/clock.ts'
import type { Tx } from '../engine/store.ts'
import { type NameId, type NameRow, nameColumns, nameKey } from './names.ts'

/** Lets the edge count the names from these times. The names are locked. */
export const countNames = (
  tx: Tx,
  edgeId: string,
  names: readonly (NameId & { from: number })[],
): Promise<unknown> =>
  executeBulk(
    tx,
    { ...nameColumns, edge_id: 'text', counting_from: 'bigint' },
    names.map(({ workspace_id, name, from }) => [workspace_id, name, edgeId, from]),
    `update tunnel_names set counting_edge_id = input.edge_id, counting_from = input.counting_from from input
     where tunnel_names.workspace_id = input.workspace_id and tunnel_names.name = input.name`,
  )

/**
 * Called with closed tunnels, whose names are locked. If the edge that counts a name has no tunnel of
 * it left, another edge that has one counts it from the next minute, and gets an instruction.
 */
export async function moveCounts(tx: Tx, closed: readonly (NameId & { edge_id: string })[]): Promise<void> {
  const now = nowText(tx)
  const lost = new Map(closed.map((tunnel) => [`${nameKey(tunnel)} ${tunnel.edge_id}`, tunnel]))
  const moved = await executeBulk<NameId & Pick<NameRow, 'counting_edge_id'>>(
    tx,
    { ...nameColumns, edge_id: 'text' },
    [...lost.values()].map(({ workspace_id, name, edge_id }) => [workspace_id, name, edge_id]),
    `update tunnel_names set counting_from = (${now} / ${MINUTE_MS} + 1) * ${MINUTE_MS},
       counting_edge_id = (select min(tunnel.edge_id) from open_tunnels as tunnel
         join edge_sessions as session on session.edge_id = tunnel.edge_id
         where tunnel.workspace_id = tunnel_names.workspace_id and tunnel.name = tunnel_names.name
           and tunnel.close_reason is null and session.lease_until > ${now}
           and tunnel.edge_id <> tunnel_names.counting_edge_id)
     from input
     where tunnel_names.workspace_id = input.workspace_id and tunnel_names.name = input.name
       and tunnel_names.counting_edge_id = input.edge_id
       and not exists (select 1 from open_tunnels as tunnel where tunnel.workspace_id = input.workspace_id
         and tunnel.name = input.name and tunnel.edge_id = input.edge_id
         and (tunnel.close_reason is null or tunnel.close_reason = 'requested'))
     returning tunnel_names.workspace_id, tunnel_names.name, tunnel_names.counting_edge_id`,
  )
  await executeBulk(
    tx,
    { ...nameColumns, edge_id: 'text' },
    moved.flatMap(({ workspace_id, name, counting_edge_id }) =>
      counting_edge_id === null ? [] : [[workspace_id, name, counting_edge_id]],
    ),
    `update open_tunnels set instruction_sequence = 0 from input
     where open_tunnels.workspace_id = input.workspace_id and open_tunnels.name = input.name
       and open_tunnels.edge_id = input.edge_id and open_tunnels.close_reason is null`,
  )
}
