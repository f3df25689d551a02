// SQL of counts: which edge counts a name in `peakTunnels`. The reports of edges are added, so one does.
import { MINUTE_MS } from '../../../lib/time.ts'
import { executeBulk } from '../engine/bulk.ts'
import { nowText } from '../engine/clock.ts'
import type { Db, Tx } from '../engine/store.ts'
import { lockNamesOfTunnels, type NameId, type NameRow, nameColumns, nameKey } from './names.ts'

/** A name, and an edge that has it. */
type NameAtEdge = NameId & { edge_id: string }
const columns = { ...nameColumns, edge_id: 'text' } as const
const toValues = (names: readonly NameAtEdge[]) =>
  names.map(({ workspace_id, name, edge_id }) => [workspace_id, name, edge_id])

type MovedCount = NameId & Pick<NameRow, 'counting_edge_id'>

/** Lets the edge count the names from these times. The names are locked. */
export const countNames = (
  tx: Tx,
  edgeId: string,
  names: readonly (NameId & { from: number })[],
): Promise<unknown> =>
  executeBulk(
    tx,
    { ...columns, counting_from: 'bigint' },
    names.map(({ workspace_id, name, from }) => [workspace_id, name, edgeId, from]),
    `update tunnel_names set counting_edge_id = input.edge_id, counting_from = input.counting_from from input
     where tunnel_names.workspace_id = input.workspace_id and tunnel_names.name = input.name`,
  )

const nextMinute = (db: Db) => `(${nowText(db)} / ${MINUTE_MS} + 1) * ${MINUTE_MS}`

/** Another edge that has the name and a lease; null if there is none. */
const otherEdge = (db: Db, names: string) =>
  `(select min(tunnel.edge_id) from open_tunnels as tunnel
    join edge_sessions as session on session.edge_id = tunnel.edge_id
    where tunnel.workspace_id = ${names}.workspace_id and tunnel.name = ${names}.name
      and tunnel.close_reason is null and session.lease_until > ${nowText(db)}
      and tunnel.edge_id <> ${names}.counting_edge_id)`

/**
 * Called with closed tunnels, whose names are locked. If the edge that counts a name has no tunnel of
 * it left, another edge that has one counts it from the next minute, and gets an instruction.
 */
export async function moveCounts(tx: Tx, closed: readonly NameAtEdge[]): Promise<void> {
  const lost = new Map(closed.map((tunnel) => [`${nameKey(tunnel)} ${tunnel.edge_id}`, tunnel]))
  const moved = await executeBulk<MovedCount>(
    tx,
    columns,
    toValues([...lost.values()]),
    `update tunnel_names set counting_from = ${nextMinute(tx)},
       counting_edge_id = ${otherEdge(tx, 'tunnel_names')}
     from input
     where tunnel_names.workspace_id = input.workspace_id and tunnel_names.name = input.name
       and tunnel_names.counting_edge_id = input.edge_id
       and not exists (select 1 from open_tunnels as tunnel where tunnel.workspace_id = input.workspace_id
         and tunnel.name = input.name and tunnel.edge_id = input.edge_id
         and (tunnel.close_reason is null or tunnel.close_reason = 'requested'))
     returning tunnel_names.workspace_id, tunnel_names.name, tunnel_names.counting_edge_id`,
  )
  await instruct(tx, toHolders(moved))
}

/**
 * Moves counts of edges that are gone, and whose sessions are locked, to other edges that have the names:
 * from the next minute, and with an instruction for both. Returns for how many tunnels, at most `size`.
 */
export async function moveCountsOfEdges(tx: Tx, edgeIds: readonly string[], size: number): Promise<number> {
  const counted = await executeBulk<NameAtEdge & { id: string }>(
    tx,
    { edge_id: 'text', size: 'bigint' },
    edgeIds.map((edgeId) => [edgeId, size]),
    `select held.workspace_id, held.name, held.edge_id, held.id from input
     join open_tunnels as held on held.edge_id = input.edge_id
     join tunnel_names as names on names.workspace_id = held.workspace_id and names.name = held.name
       and names.counting_edge_id = held.edge_id
     where ${otherEdge(tx, 'names')} is not null
     limit (select max(size) from input)`,
  )
  await lockNamesOfTunnels(tx, counted)
  const other = otherEdge(tx, 'tunnel_names')
  const moved = await executeBulk<MovedCount>(
    tx,
    columns,
    toValues(counted),
    `update tunnel_names set counting_from = ${nextMinute(tx)}, counting_edge_id = ${other}
     from input
     where tunnel_names.workspace_id = input.workspace_id and tunnel_names.name = input.name
       and tunnel_names.counting_edge_id = input.edge_id and ${other} is not null
     returning tunnel_names.workspace_id, tunnel_names.name, tunnel_names.counting_edge_id`,
  )
  await instruct(tx, [...toHolders(moved), ...counted])
  return counted.length
}

const toHolders = (moved: readonly MovedCount[]): NameAtEdge[] =>
  moved.flatMap(({ counting_edge_id: edge_id, ...name }) => (edge_id === null ? [] : [{ ...name, edge_id }]))

/** The next syncs of the edges tell them whether they count the names. */
const instruct = (tx: Tx, names: readonly NameAtEdge[]): Promise<unknown> =>
  executeBulk(
    tx,
    columns,
    toValues(names),
    `update open_tunnels set instruction_sequence = 0 from input
     where open_tunnels.workspace_id = input.workspace_id and open_tunnels.name = input.name
       and open_tunnels.edge_id = input.edge_id and open_tunnels.close_reason is null`,
  )
