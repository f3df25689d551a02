// Closes open tunnels on request: of users in the dashboard, and of programs with an API key.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tx } from '../../store/engine/store.ts'
import { listKeyLabels } from '../../store/keys/rows.ts'
import { lockSessionsByName } from '../../store/tunnels/edge-sessions.ts'
import { findTunnel, requestClose } from '../../store/tunnels/instructions.ts'
import { mayBeCarried, type NamedTunnel } from '../../store/tunnels/lists.ts'
import { lockName } from '../../store/tunnels/names.ts'
import { announce, publishChange } from '../../verification/propagation.ts'
import { isAtLeast, type Role, reauthorize } from '../actors.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Context, KeyActor, UserActor } from '../context.ts'
import { Fault } from '../fault.ts'
import { LEASE_MS, TRAFFIC_LEASE_MS } from './edge-sessions.ts'

type Closer = Context & { actor: KeyActor | UserActor }

/** For the user of the tunnel client. */
export const closedBy = (name: string | null) => `${name ?? 'An admin of the workspace'} closed this tunnel.`

/** Edges that are connected close it within a second. */
export async function startClosing(ctx: Closer, id: string) {
  await instructEdges(ctx, id)
  return { id, closing: true as const }
}

/** Returns when no edge carries the tunnel. */
export async function closeAndWait(ctx: Closer, id: string) {
  const name = await instructEdges(ctx, id)
  await waitUntilClosed(ctx, { workspaceId: ctx.workspaceId, tunnelId: id, name })
  return { id, closed: true as const }
}

/** Returns the name. A tunnel of another workspace and an unknown one are the same: not found. */
async function instructEdges(ctx: Closer, id: string): Promise<string> {
  const { workspaceId, actor } = ctx
  const { name, changes } = await ctx.store.transaction(async (db) => {
    const { role } = await reauthorize(db, ctx, { lockWorkspace: false })
    const found = await findTunnel(db, workspaceId, id)
    if (found === undefined) throw new Fault('not_found')
    requireMayClose(actor, role, found)
    await lockSessionsByName(db, workspaceId, found.name)
    await lockName(db, { workspace_id: workspaceId, name: found.name })
    // Read again: the tunnel may have been closed before its name was locked.
    const name = (await findTunnel(db, workspaceId, id))?.name
    if (name === undefined) throw new Fault('not_found')
    const by = { at: ctx.clock(), by: await nameCloser(db, ctx) }
    const edgeIds = await requestClose(db, { workspaceId, tunnelId: id, name }, by)
    if (edgeIds.length === 0) return { name, changes: [] }
    await writeAudit(db, ctx, { workspaceId, actor, action: 'tunnel.closed', target: { id, name } })
    const changes = []
    for (const edgeId of edgeIds)
      changes.push(await publishChange(db, ctx, { kind: 'tunnels', subjectId: edgeId }))
    return { name, changes }
  })
  for (const change of changes) announce(ctx, change)
  return name
}

/**
 * The role of a user in the dashboard is checked by the operation. `role` is that of a personal key's user.
 */
function requireMayClose(
  actor: KeyActor | UserActor,
  role: Role | undefined,
  { keyUserId }: { keyUserId: string | null },
): void {
  if (actor.kind === 'user' || actor.userId === null || actor.userId === keyUserId) return
  if (role !== undefined && isAtLeast(role, 'admin')) return
  throw new Fault('forbidden', {
    message:
      'The personal API key of a member closes only tunnels that the member has opened. ' +
      'Ask an admin or owner of the workspace to close this one.',
  })
}

async function nameCloser(db: Tx, { actor, workspaceId }: Closer): Promise<string> {
  if (actor.kind === 'user') return actor.name
  const [key] = await listKeyLabels(db, workspaceId, [actor.id])
  return `The API key ${key?.label ? `"${key.label}"` : actor.id}`
}

/** Allowance for clocks that run at different rates while a lease lasts. */
const DRIFT_MS = 300
/** An edge that reaches no node stops carrying traffic while this much of its lease is left. */
const SILENT_LEASE_MS = LEASE_MS - TRAFFIC_LEASE_MS - DRIFT_MS
const WAIT_MS_MAX = TRAFFIC_LEASE_MS + 2_000
/** Pauses between queries: they grow, because most edges respond at once, and a silent one never does. */
const PAUSE_MS = { min: 10, factor: 1.5, max: 200 }

/** Waits until each edge has reported the tunnel as closed, or carries nothing because it is silent. */
async function waitUntilClosed({ store }: Context, tunnel: NamedTunnel): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX
  let pauseMs = PAUSE_MS.min
  while (await mayBeCarried(store.db, tunnel, SILENT_LEASE_MS)) {
    if (performance.now() > deadline) throw notConfirmed()
    await sleep(pauseMs)
    pauseMs = Math.min(pauseMs * PAUSE_MS.factor, PAUSE_MS.max)
  }
}

const notConfirmed = () =>
  new Fault('unavailable', {
    message:
      'The edge was told to close this tunnel, and has not confirmed it. Check whether the tunnel is still ' +
      'listed, and try again.',
    retryAfterS: 5,
  })
