// Lists open tunnels, for the dashboard and the operator.

import {
  type DescribedTunnel,
  type ListPosition,
  listAllTunnels,
  listTunnels,
} from '../../store/tunnels/lists.ts'
import type { Context, Services } from '../context.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { parseClientAccess } from './reported.ts'

const LIST_MAX = 1_000
/** A client has connections to few edges. */
const CONNECTIONS_MAX = 4 * LIST_MAX

export async function listOpen({ store, workspaceId }: Context) {
  const rows = await listTunnels(store.db, workspaceId, CONNECTIONS_MAX + 1)
  const tunnels = groupConnections(rows)
  // The last tunnel may have connections that were not read.
  if (rows.length > CONNECTIONS_MAX && tunnels.length > 1) tunnels.pop()
  const isComplete = rows.length <= CONNECTIONS_MAX && tunnels.length <= LIST_MAX
  return { tunnels: tunnels.slice(0, LIST_MAX).map(describeTunnel), isComplete }
}

type Connections = [DescribedTunnel, ...DescribedTunnel[]]

/** The connections of one tunnel follow each other. */
function groupConnections(rows: readonly DescribedTunnel[]): Connections[] {
  const tunnels: Connections[] = []
  for (const row of rows) {
    const last = tunnels.at(-1)
    if (last && isSameTunnel(last[0], row)) last.push(row)
    else tunnels.push([row])
  }
  return tunnels
}

const isSameTunnel = (a: DescribedTunnel, b: DescribedTunnel) =>
  a.workspace_id === b.workspace_id && a.tunnel_id === b.tunnel_id

function describeTunnel(connections: Connections) {
  const [row] = connections
  const sum = (column: 'requests' | 'bytes_in' | 'bytes_out' | 'streams') =>
    Math.min(
      connections.reduce((total, connection) => total + connection[column], 0),
      Number.MAX_SAFE_INTEGER,
    )
  const edges = new Map(connections.map(({ edge_id, edgeName }) => [edge_id, edgeName]))
  return {
    id: row.tunnel_id,
    name: row.name,
    type: row.type,
    pool: row.pool === 1,
    url: row.url,
    key: { id: row.key_id, label: row.keyLabel },
    edges: Array.from(edges, ([id, name]) => ({ id, name })),
    client: { address: row.client_address, version: row.client_version },
    access: parseClientAccess(row.client_access),
    openedAt: toIso(Math.min(...connections.map(({ opened_at }) => opened_at))),
    requests: sum('requests'),
    bytesIn: sum('bytes_in'),
    bytesOut: sum('bytes_out'),
    streams: sum('streams'),
    closeRequestedAt: isoOrNull(row.close_requested_at),
  }
}

/** For the operator: the tunnels of all workspaces, in slices. */
export async function* listAllOpen({ store }: Services) {
  const read = (after: ListPosition | undefined) => listAllTunnels(store.db, { after, limit: SLICE_ROWS })
  const describe = (connections: Connections) => ({
    workspace: connections[0].slug,
    ...describeTunnel(connections),
  })
  let rest: DescribedTunnel[] = []
  for await (const rows of readSlices<DescribedTunnel>(read)) {
    const tunnels = groupConnections([...rest, ...rows])
    // Its other connections may be in the next slice.
    rest = tunnels.pop() ?? []
    yield tunnels.map(describe)
  }
  yield groupConnections(rest).map(describe)
}
