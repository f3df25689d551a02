// SQL of edges and their credentials.
import { type Selectable, sql } from 'kysely'
import { nowIn } from '../engine/clock.ts'
import type { Page } from '../engine/page.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { isActiveEdge } from '../keys/state.ts'

type EdgeRow = Selectable<Tables['edges']>

export async function insertEdge(db: Tx, row: EdgeRow): Promise<void> {
  await db.insertInto('edges').values(row).execute()
}

/** The columns that a verification needs. */
export const findEdgeByHash = async (db: Db, hash: string) => (await selectByHash(db, { hash }))[0]

const selectByHash = statement((db: Db, { hash }: Placeholders<{ hash: string }>) =>
  db.selectFrom('edges').select(['id', 'edge_group', 'revoked_at']).where('hash', '=', hash),
)

export const getEdge = (db: Db, id: string): Promise<EdgeRow> =>
  db.selectFrom('edges').selectAll().where('id', '=', id).executeTakeFirstOrThrow()

export const listEdges = (db: Db): Promise<EdgeRow[]> =>
  db.selectFrom('edges').selectAll().orderBy('id', 'desc').execute()

const reportedEdges = (db: Db) =>
  db
    .selectFrom('edges')
    .leftJoin('edge_sessions as session', 'session.edge_id', 'edges.id')
    .select([
      'edges.id',
      'edges.name',
      'edges.edge_group',
      'edges.url',
      'edges.created_at',
      'edges.revoked_at',
    ])
    .select(['session.version', 'session.started_at', 'session.last_sync_at', 'session.peer_address'])
    .select(['session.tunnels', 'session.streams'])
    .select(sql<boolean>`coalesce(session.lease_until > ${nowIn(db)}, false)`.as('isConnected'))

export type ReportedEdge = Awaited<ReturnType<typeof listReportedEdges>>[number]

/** All edges with their last sync, newest first. */
export const listReportedEdges = (db: Db) => reportedEdges(db).orderBy('edges.id', 'desc').execute()

const isInGroupOf = (workspaceId: string) =>
  sql<boolean>`edges.edge_group = (select edge_group from workspaces where id = ${workspaceId})`

/** Edges of the group of a workspace by name, after the name `after`. */
export function listActiveEdges(db: Db, workspaceId: string, { after, limit }: Page) {
  const query = reportedEdges(db)
    .where(isActiveEdge)
    .where(isInGroupOf(workspaceId))
    .orderBy('edges.name')
    .limit(limit)
  return (after === undefined ? query : query.where('edges.name', '>', after)).execute()
}

export const findActiveEdge = (db: Db, workspaceId: string): Promise<Pick<EdgeRow, 'name'> | undefined> =>
  db
    .selectFrom('edges')
    .select('name')
    .where(isActiveEdge)
    .where(isInGroupOf(workspaceId))
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()

/** Different public URLs of active edges of the group of a workspace. */
export const listEdgeUrls = async (db: Db, workspaceId: string, limit: number): Promise<string[]> => {
  const edges = db.selectFrom('edges').select('url').distinct().where(isActiveEdge)
  const rows = await edges.where(isInGroupOf(workspaceId)).where('url', 'is not', null).limit(limit).execute()
  return rows.flatMap(({ url }) => url ?? [])
}

export interface ConnectedEdge {
  id: string
  url: string
  /** Null if it does not forward requests to other edges. */
  peerAddress: string | null
}

/** Edges of a group that have a URL and report their tunnels, those with the fewest tunnels first. */
export async function listConnectedEdges(db: Db, group: string, limit: number): Promise<ConnectedEdge[]> {
  const rows = await db
    .selectFrom('edges')
    .innerJoin('edge_sessions as session', 'session.edge_id', 'edges.id')
    .select(['edges.id', 'edges.url', 'session.peer_address as peerAddress'])
    .where(isActiveEdge)
    .where('edges.edge_group', '=', group)
    .where('edges.url', 'is not', null)
    .where('session.lease_until', '>', nowIn(db))
    .orderBy('session.tunnels')
    .orderBy('edges.id')
    .limit(limit)
    .execute()
  return rows.map((row) => ({ ...row, url: row.url as string }))
}

/** Returns the name of the edge; undefined if there is no active edge with this id. */
export const updateEdgeUrl = (
  db: Tx,
  id: string,
  url: string | null,
): Promise<Pick<EdgeRow, 'name'> | undefined> =>
  db
    .updateTable('edges')
    .set({ url })
    .where('id', '=', id)
    .where(isActiveEdge)
    .returning('name')
    .executeTakeFirst()

/** Returns name and credential hash of the edge; undefined if there is no active edge with this id. */
export const revokeEdge = (
  db: Tx,
  id: string,
  at: number,
): Promise<Pick<EdgeRow, 'name' | 'hash'> | undefined> =>
  db
    .updateTable('edges')
    .set({ revoked_at: at })
    .where('id', '=', id)
    .where(isActiveEdge)
    .returning(['name', 'hash'])
    .executeTakeFirst()
