// SQL that lists and counts open tunnels. A row counts only while the lease of its edge is valid, so every
// query here joins the session.
import { sql } from 'kysely'
import { nowIn } from '../engine/clock.ts'
import type { Db } from '../engine/store.ts'
import type { TunnelRow } from './rows.ts'

const isOpen = sql<boolean>`(close_reason is null or close_reason = 'requested')`

export const openTunnels = (db: Db) =>
  db
    .selectFrom('open_tunnels as tunnel')
    .innerJoin('edge_sessions as session', 'session.edge_id', 'tunnel.edge_id')
    .where('session.lease_until', '>', nowIn(db))
    .where(isOpen)

/** Open tunnels with the names of their key, edge and workspace. */
const describedTunnels = (db: Db) =>
  openTunnels(db)
    .innerJoin('edges', 'edges.id', 'tunnel.edge_id')
    .innerJoin('workspaces', 'workspaces.id', 'tunnel.workspace_id')
    .leftJoin('api_keys', 'api_keys.id', 'tunnel.key_id')
    .selectAll('tunnel')
    .select(['edges.name as edgeName', 'workspaces.slug', 'api_keys.label as keyLabel'])

/** Where a page begins: after all connections of this tunnel. */
export type PagePosition = Pick<TunnelRow, 'name' | 'tunnel_id'>

interface TunnelPage {
  /** Only tunnels with this name. */
  name?: string | undefined
  after?: PagePosition | undefined
  limit: number
}

/** Connections, sorted by name and tunnel. */
export function listTunnels(db: Db, workspaceId: string, { name, after, limit }: TunnelPage) {
  let query = describedTunnels(db)
    .where('tunnel.workspace_id', '=', workspaceId)
    .orderBy('tunnel.name')
    .orderBy('tunnel.tunnel_id')
    .orderBy('tunnel.opened_at')
    .orderBy('tunnel.edge_id')
    .limit(limit)
  if (name !== undefined) query = query.where('tunnel.name', '=', name)
  if (after !== undefined)
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(refTuple('tunnel.name', 'tunnel.tunnel_id'), '>', tuple(after.name, after.tunnel_id)),
    )
  return query.execute()
}

/** The connections of one tunnel. */
export const listConnections = (
  db: Db,
  { workspaceId, tunnelId, limit }: { workspaceId: string; tunnelId: string; limit: number },
): Promise<DescribedTunnel[]> =>
  describedTunnels(db)
    .where('tunnel.workspace_id', '=', workspaceId)
    .where('tunnel.tunnel_id', '=', tunnelId)
    .orderBy('tunnel.opened_at')
    .orderBy('tunnel.edge_id')
    .limit(limit)
    .execute()

export type DescribedTunnel = Awaited<ReturnType<typeof listTunnels>>[number]

export type ListPosition = Pick<TunnelRow, 'workspace_id' | 'name' | 'tunnel_id' | 'edge_id' | 'id'>

/** Across workspaces, so only for the operator. Sorted by workspace, name and tunnel. */
export function listAllTunnels(
  db: Db,
  { after, limit }: { after: ListPosition | undefined; limit: number },
): Promise<DescribedTunnel[]> {
  const query = describedTunnels(db)
    .orderBy('tunnel.workspace_id')
    .orderBy('tunnel.name')
    .orderBy('tunnel.tunnel_id')
    .orderBy('tunnel.edge_id')
    .orderBy('tunnel.id')
    .limit(limit)
  return (
    after
      ? query.where(({ eb, refTuple, tuple }) =>
          eb(
            refTuple('tunnel.workspace_id', 'tunnel.name', 'tunnel.tunnel_id', 'tunnel.edge_id', 'tunnel.id'),
            '>',
            tuple(after.workspace_id, after.name, after.tunnel_id, after.edge_id, after.id),
          ),
        )
      : query
  ).execute()
}

export interface NamedTunnel {
  workspaceId: string
  tunnelId: string
  name: string
}

/**
 * Whether an edge whose lease is valid for longer than this may carry the tunnel. One that the client has
 * left for another edge may still have its requests in progress.
 */
export async function mayBeCarried(
  db: Db,
  { workspaceId, tunnelId, name }: NamedTunnel,
  leaseMs: number,
): Promise<boolean> {
  const found = await db
    .selectFrom('open_tunnels as tunnel')
    .innerJoin('edge_sessions as session', 'session.edge_id', 'tunnel.edge_id')
    .select('tunnel.id')
    .where('tunnel.workspace_id', '=', workspaceId)
    .where('tunnel.name', '=', name)
    .where('tunnel.tunnel_id', '=', tunnelId)
    .where('session.lease_until', '>', sql<number>`${nowIn(db)} + ${leaseMs}`)
    .limit(1)
    .executeTakeFirst()
  return found !== undefined
}

/** Counts the open tunnels of a workspace by edge. */
export async function countByEdge(db: Db, workspaceId: string): Promise<Map<string, number>> {
  const rows = await openTunnels(db)
    .select((row) => ['tunnel.edge_id', row.fn.count('tunnel.tunnel_id').distinct().as('count')])
    .where('tunnel.workspace_id', '=', workspaceId)
    .groupBy('tunnel.edge_id')
    .execute()
  return new Map(rows.map((row) => [row.edge_id, Number(row.count)]))
}

interface OpenName {
  count: number
  /** The URL of one of them. */
  url: string
}

/** Names of open tunnels of a workspace. */
export async function listOpenNames(db: Db, workspaceId: string): Promise<Map<string, OpenName>> {
  const rows = await openTunnels(db)
    .select((row) => [
      'tunnel.name',
      row.fn.count('tunnel.tunnel_id').distinct().as('count'),
      row.fn.min('tunnel.url').as('url'),
    ])
    .where('tunnel.workspace_id', '=', workspaceId)
    .groupBy('tunnel.name')
    .execute()
  return new Map(rows.map(({ name, count, url }) => [name, { count: Number(count), url }]))
}
