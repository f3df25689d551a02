// SQL of peers: edges that accept connections of other edges of their group.
import { nowIn } from '../engine/clock.ts'
import type { Db } from '../engine/store.ts'
import { isActiveEdge } from '../keys/state.ts'

interface PeerRow {
  id: string
  group: string
  address: string
}

/** Active edges that have reported an address, and whose lease is valid. */
export async function listPeers(db: Db): Promise<PeerRow[]> {
  const rows = await db
    .selectFrom('edge_sessions as session')
    .innerJoin('edges', 'edges.id', 'session.edge_id')
    .select(['edges.id', 'edges.edge_group as group', 'session.peer_address as address'])
    .where('session.peer_address', 'is not', null)
    .where('session.lease_until', '>', nowIn(db))
    .where(isActiveEdge)
    .execute()
  return rows.map((row) => ({ ...row, address: row.address as string }))
}
