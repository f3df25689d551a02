// SQL that lists and counts open tunnels. A row counts only while the lease of its edge is valid: every query here
// joins its session.
import { sql } from 'kysely'
import { nowIn } from './database-clock.ts'
import type { Db } from './store.ts'
import type { TunnelPosition } from './tunnels.ts'

const isOpen = sql<boolean>`(close_reason is null or close_reason = 'requested')`

export const openTunnels = (db: Db) =>
  db
    .selectFrom('open_tunnels as tunnel')
    .innerJoin('edge_sessions as session', 'session.edge_id', 'tunnel.edge_id')
    .where('session.lease_until', '>', nowIn(db))
    .where(isOpen)

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
