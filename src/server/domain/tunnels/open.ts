// Lists and closes open tunnels, for the dashboard and the operator.

import { requestClose } from '../../store/tunnels/instructions.ts'
import {
  type DescribedTunnel,
  type ListPosition,
  listAllTunnels,
  listTunnels,
} from '../../store/tunnels/lists.ts'
import { announce, publishChange } from '../../verification/propagation.ts'
import { reauthorize } from '../actors.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { readSlices, SLICE_ROWS } from '../pagination.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { parseClientAccess } from './reported.ts'

const LIST_MAX = 1_000

export async function listOpen({ store, workspaceId }: Context) {
  const rows = await listTunnels(store.db, workspaceId, LIST_MAX + 1)
  return { tunnels: rows.slice(0, LIST_MAX).map(describeTunnel), isComplete: rows.length <= LIST_MAX }
}

const describeTunnel = (row: DescribedTunnel) => ({
  id: row.id,
  name: row.name,
  type: row.type,
  pool: row.pool === 1,
  url: row.url,
  key: { id: row.key_id, label: row.keyLabel },
  edge: { id: row.edge_id, name: row.edgeName },
  client: { address: row.client_address, version: row.client_version },
  access: parseClientAccess(row.client_access),
  openedAt: toIso(row.opened_at),
  requests: row.requests,
  bytesIn: row.bytes_in,
  bytesOut: row.bytes_out,
  streams: row.streams,
  closeRequestedAt: isoOrNull(row.close_requested_at),
})

/** For the operator: the tunnels of all workspaces, in slices. */
export async function* listAllOpen({ store }: Services) {
  const read = (after: ListPosition | undefined) => listAllTunnels(store.db, { after, limit: SLICE_ROWS })
  for await (const rows of readSlices<DescribedTunnel>(read))
    yield rows.map((row) => ({ workspace: row.slug, ...describeTunnel(row) }))
}

/** For the user of the tunnel client. */
export const closedBy = (name: string | null) =>
  `${name ?? 'An admin of the workspace'} closed this tunnel in the dashboard.`

/** A tunnel of another workspace and an unknown one are the same: not found. */
export async function closeTunnel(ctx: Context & { actor: { name: string } }, id: string) {
  const { workspaceId, actor } = ctx
  const change = await ctx.store.transaction(async (db) => {
    await reauthorize(db, ctx, { lockWorkspace: false })
    const closing = await requestClose(db, workspaceId, id, { at: ctx.clock(), by: actor.name })
    if (!closing) throw new Fault('not_found')
    if (!closing.isNew) return undefined
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: 'tunnel.closed',
      target: { id, name: closing.name },
    })
    return publishChange(db, ctx, { kind: 'tunnels', subjectId: closing.edgeId })
  })
  if (change) announce(ctx, change)
  return { id, closing: true as const }
}
