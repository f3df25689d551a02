// Rotation of API keys: a successor with the same label and lifetime, while the old key stays valid for an
// overlap in which its users change over.
import { type Overlap, overlapHours } from '../credentials/rotation.ts'
import { awaitPropagation, type KeyChange, publishChange } from '../directory/propagation.ts'
import { stateOf } from '../store/key-state.ts'
import { findKeyById, type KeyRow, listSuccessors, lockKeyRow, revokeKey, setExpiry } from '../store/keys.ts'
import type { Tx } from '../store/store.ts'
import type { LockedWorkspace } from '../store/workspaces.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../time.ts'
import { reauthorize } from './actors.ts'
import { writeAudit } from './audit.ts'
import { changesBetween } from './audit-changes.ts'
import type { Actor, Context, Services } from './context.ts'
import { Fault } from './fault.ts'
import { addKey, newKey, noSuchKey } from './keys.ts'
import { policyOf } from './policy.ts'
import { isoOf, isoOrNull } from './timestamps.ts'

export async function rotate(ctx: Context, id: string, overlap: Overlap) {
  const { workspaceId, actor } = ctx
  const { rotated, position } = await ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx)
    const old = await lockKeyRow(db, { workspaceId, id })
    if (!old || stateOf(old) !== 'active') throw noSuchKey(id)
    const latest = await requireNoActiveSuccessor(db, old)
    const successor = newKey(ctx, workspace, old.label, expiryLike(latest ?? old, workspace))
    // Before the successor is added: a key that is revoked does not count against the limit.
    const { change, expiresAt } = await retire(db, ctx, old, overlap)
    await addKey(db, ctx, workspace, successor, id)
    const before = { expiresAt: isoOrNull(old.expires_at) }
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: 'key.rotated',
      target: { id },
      changes: changesBetween(before, { successor: successor.id, expiresAt: isoOrNull(expiresAt) }),
    })
    const rotated = { ...successor, predecessor: { id, expiresAt: isoOrNull(expiresAt) } }
    return { rotated, position: await publishChange(db, ctx, change) }
  })
  await awaitPropagation(ctx, position)
  return rotated
}

/** For the operator, who gives the key's id without its workspace. */
export async function rotateAsOperator(services: Services, actor: Actor, id: string, overlap: Overlap) {
  const key = await findKeyById(services.store.db, id)
  if (!key) throw noSuchKey(id)
  return rotate({ ...services, actor, workspaceId: key.workspace_id }, id, overlap)
}

/**
 * The latest successor of earlier rotations, none of which is active. The key itself has the expiry of its overlap;
 * the latest successor still has its own.
 */
async function requireNoActiveSuccessor(db: Tx, { id, workspace_id }: KeyRow): Promise<KeyRow | undefined> {
  let latest: KeyRow | undefined
  let ids = [id]
  while (ids.length > 0) {
    const successors = await listSuccessors(db, workspace_id, ids)
    const active = successors.find((row) => stateOf(row) === 'active')
    if (active) throw hasSuccessor(id, active)
    latest = successors[0] ?? latest
    ids = successors.map((row) => row.id)
  }
  return latest
}

const hasSuccessor = (id: string, successor: KeyRow) =>
  new Fault('conflict', {
    message:
      `API key ${id} was rotated already: its successor is ${successor.id}. Rotate that one, or revoke it first ` +
      'if nobody has it.',
  })

/** As long from now as the key was created for, and as the policy allows. */
function expiryLike({ created_at, expires_at, now }: KeyRow, workspace: LockedWorkspace): string | undefined {
  if (expires_at === null) return undefined
  const { keyDaysMax } = policyOf(workspace)
  const lifetimeMs = Math.min(expires_at - created_at, (keyDaysMax ?? Number.POSITIVE_INFINITY) * DAY_MS)
  return isoOf(now + lifetimeMs)
}

/** Revokes the key, or lets it expire at the end of the overlap unless it expires earlier. */
async function retire(
  db: Tx,
  ctx: Context,
  { id, hash, expires_at, now }: KeyRow,
  overlap: Overlap,
): Promise<{ change: KeyChange; expiresAt: number | null }> {
  const { workspaceId, actor } = ctx
  if (overlap === 'none') {
    await revokeKey(db, workspaceId, id, ctx.clock())
    await writeAudit(db, ctx, { workspaceId, actor, action: 'key.revoked', target: { id } })
    return { change: { kind: 'key', subjectId: id, hash }, expiresAt: null }
  }
  const end = Math.ceil((now + overlapHours[overlap] * HOUR_MS) / SECOND_MS) * SECOND_MS
  const expiresAt = Math.min(end, expires_at ?? end)
  await setExpiry(db, { workspaceId, id, expiresAt })
  return { change: { kind: 'key-expiry', subjectId: id, hash, expiresAt }, expiresAt }
}
