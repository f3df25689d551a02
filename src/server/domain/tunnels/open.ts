// Lists and closes open tunnels, for the dashboard and the operator.

import { lockSessionsByName } from '../../store/tunnels/edge-sessions.ts'
import { findTunnelName, requestClose } from '../../store/tunnels/instructions.ts'
import {
  type DescribedTunnel,
  type ListPosition,
  listAllTunnels,
  listTunnels,
} from '../../store/tunnels/lists.ts'
import { lockName } from '../../store/tunnels/names.ts'
import { announce, publishChange } from '../../verification/propagation.ts'
import { reauthorize } from '../actors.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context, Services } from '../context.ts'
import { Fault } from '../fault.ts'
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

/** For the user of the tunnel client. */
export const closedBy = (name: string | null) =>
  `${name ?? 'An admin of the workspace'} closed this tunnel in the dashboard.`

/** A tunnel of another workspace and an unknown one are the same: not found. */
export async function closeTunnel(ctx: Context & { actor: { name: string } }, id: string) {
  const { workspaceId, actor } = ctx
  const changes = await ctx.store.transaction(async (db) => {
    await reauthorize(db, ctx, { lockWorkspace: false })
    const found = await findTunnelName(db, workspaceId, id)
    if (found === undefined) throw new Fault('not_found')
    await lockSessionsByName(db, workspaceId, found)
    await lockName(db, { workspace_id: workspaceId, name: found })
    // Read again: the tunnel may have been closed before its name was locked.
    const name = await findTunnelName(db, workspaceId, id)
    if (name === undefined) throw new Fault('not_found')
    const by = { at: ctx.clock(), by: actor.name }
    const edgeIds = await requestClose(db, { workspaceId, tunnelId: id, name }, by)
    if (edgeIds.length === 0) return []
    await writeAudit(db, ctx, { workspaceId, actor, action: 'tunnel.closed', target: { id, name } })
    const published = []
    for (const edgeId of edgeIds)
      published.push(await publishChange(db, ctx, { kind: 'tunnels', subjectId: edgeId }))
    return published
  })
  for (const change of changes) announce(ctx, change)
  return { id, closing: true as const }
}
