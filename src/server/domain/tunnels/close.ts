// Closes open tunnels on request.
import { lockSessionsByName } from '../../store/tunnels/edge-sessions.ts'
import { findTunnelName, requestClose } from '../../store/tunnels/instructions.ts'
import { lockName } from '../../store/tunnels/names.ts'
import { announce, publishChange } from '../../verification/propagation.ts'
import { reauthorize } from '../actors.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context } from '../context.ts'
import { Fault } from '../fault.ts'

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
