// Rotation of API keys: a successor with the same label and lifetime, while the old key stays valid for an
// overlap in which its users change over.
import { KEY_DAYS_MAX } from '../contract/dashboard/settings.ts'
import { type Overlap, overlapHours } from '../credentials/rotation.ts'
import { awaitPropagation, type KeyChange, publishChange } from '../directory/propagation.ts'
import { stateOf } from '../store/key-state.ts'
import { findKeyById, type KeyRow, lockKeyRow, setExpiry } from '../store/keys.ts'
import type { Tx } from '../store/store.ts'
import type { WorkspaceRules } from '../store/workspaces.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../time.ts'
import { reauthorize } from './actors.ts'
import { writeAudit } from './audit.ts'
import { changesBetween } from './audit-changes.ts'
import type { Actor, Context, Services } from './context.ts'
import { Fault } from './fault.ts'
import { listDescendants } from './key-lineage.ts'
import { addKey, newKey, noSuchKey, revokeActive } from './keys.ts'
import { policyOf } from './policy.ts'
import { isoOf, isoOrNull } from './timestamps.ts'

export async function rotate(ctx: Context, id: string, overlap: Overlap) {
  const { workspaceId, actor } = ctx
  const { rotated, position } = await ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx)
    const old = await lockKeyRow(db, { workspaceId, id })
    if (!old || stateOf(old) !== 'active') throw noSuchKey(id)
    const latest = await findLatestSuccessor(db, old)
    const now = ctx.clock()
    const expiresAt = successorExpiry(latest ?? old, workspace, now)
    const successor = newKey(ctx, workspace, { label: old.label, expiresAt, now })
    // Before the successor is added: a key that is revoked does not count against the limit.
    const { change, predecessor } = await retire(db, ctx, old, overlap)
    await addKey(db, ctx, workspace, successor, id)
    const before = { expiresAt: isoOrNull(old.expires_at) }
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: 'key.rotated',
      target: { id },
      changes: changesBetween(before, { successor: successor.id, expiresAt: predecessor.expiresAt }),
    })
    return { rotated: { ...successor, predecessor }, position: await publishChange(db, ctx, change) }
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
 * Throws if a successor is active. A key that was rotated has the expiry of its overlap; its latest successor
 * still has its own.
 */
async function findLatestSuccessor(db: Tx, { id, workspace_id }: KeyRow): Promise<KeyRow | undefined> {
  const successors = await listDescendants(db, workspace_id, [id])
  const active = successors.find((row) => stateOf(row) === 'active')
  if (active) throw hasSuccessor(id, active)
  return successors[0]
}

const hasSuccessor = (id: string, successor: KeyRow) =>
  new Fault('conflict', {
    message:
      `API key ${id} was rotated already: its successor is ${successor.id}. Rotate that one, or revoke it ` +
      'first if its raw key was lost.',
  })

/** As long from now as the key was created for, and at most as long as is allowed now. */
function successorExpiry(
  { created_at, expires_at }: KeyRow,
  workspace: WorkspaceRules,
  now: number,
): string | undefined {
  if (expires_at === null) return undefined
  const daysMax = policyOf(workspace).keyDaysMax ?? KEY_DAYS_MAX
  const lifetimeMs = Math.min(expires_at - created_at, daysMax * DAY_MS)
  return isoOf(now + lifetimeMs)
}

interface Retired {
  change: KeyChange
  predecessor: { id: string; state: 'active' | 'revoked'; expiresAt: string | null }
}

/** Revokes the key, or lets it expire at the end of the overlap unless it expires earlier. */
async function retire(db: Tx, ctx: Context, old: KeyRow, overlap: Overlap): Promise<Retired> {
  const { id, hash, expires_at, now } = old
  if (overlap === 'none') {
    const change = await revokeActive(db, ctx, id)
    if (!change) throw noSuchKey(id)
    return { change, predecessor: { id, state: 'revoked', expiresAt: isoOrNull(expires_at) } }
  }
  const end = Math.ceil((now + overlapHours[overlap] * HOUR_MS) / SECOND_MS) * SECOND_MS
  const expiresAt = Math.min(end, expires_at ?? end)
  await setExpiry(db, { workspaceId: ctx.workspaceId, id, expiresAt })
  return {
    change: { kind: 'key-expiry', subjectId: id, hash, expiresAt },
    predecessor: { id, state: 'active', expiresAt: isoOf(expiresAt) },
  }
}
