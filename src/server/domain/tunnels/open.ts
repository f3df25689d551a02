// Lists open tunnels, for members, programs with an API key, and the operator.

import { PAGE_ITEMS } from '../../../contract/limits.ts'
import {
  type DescribedTunnel,
  type ListPosition,
  listAllTunnels,
  listConnections,
  listTunnels,
  type PagePosition,
} from '../../store/tunnels/lists.ts'
import type { Context, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { type PageRequest, readSlices, SLICE_ROWS } from '../pagination.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { parseClientAccess } from './reported.ts'

/** A client has connections to at most 4 edges, and up to 16 extra ones to edges with several workers. */
const CONNECTIONS_PER_TUNNEL = 20
/** How many connections of a tunnel are shown when it is read alone. */
const CONNECTIONS_MAX = 1_000

/** A page of open tunnels by name, with all edges of each. */
export async function listOpen(
  { store, workspaceId }: Context,
  { name, limit = PAGE_ITEMS.default, cursor }: PageRequest & { name?: string | undefined },
) {
  const after = cursor === undefined ? undefined : parseCursor(cursor)
  const connectionsMax = CONNECTIONS_PER_TUNNEL * limit
  const rows = await listTunnels(store.db, workspaceId, { name, after, limit: connectionsMax + 1 })
  const tunnels = groupConnections(rows)
  // The last tunnel may have connections that were not read.
  if (rows.length > connectionsMax && tunnels.length > 1) tunnels.pop()
  const page = tunnels.slice(0, limit)
  const isComplete = rows.length <= connectionsMax && tunnels.length <= limit
  const [last] = page.at(-1) ?? []
  return {
    tunnels: page.map(describeTunnel),
    isComplete,
    next: isComplete || last === undefined ? null : toCursor(last),
  }
}

/** With the name, so that a page begins at the right place if its tunnel was closed meanwhile. */
const toCursor = ({ name, tunnel_id }: PagePosition) => `${name}.${tunnel_id}`

function parseCursor(cursor: string): PagePosition {
  const [name = '', tunnel_id = ''] = cursor.split('.')
  return { name, tunnel_id }
}

/** A tunnel of another workspace and an unknown one are the same: not found. */
export async function readOpen({ store, workspaceId }: Context, tunnelId: string) {
  const [connections] = groupConnections(
    await listConnections(store.db, { workspaceId, tunnelId, limit: CONNECTIONS_MAX }),
  )
  if (connections === undefined) throw new Fault('not_found')
  return describeTunnel(connections)
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
