// Rotation of API keys: a successor with the same label and lifetime, while the old key stays valid for an
// overlap in which its users change over.
import { KEY_DAYS_MAX } from '../../../contract/limits.ts'
import { type Overlap, overlapHours } from '../../../lib/credentials/rotation.ts'
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../../lib/time.ts'
import type { Db, Tx } from '../../store/engine/store.ts'
import { type KeyRow, listActiveByLineage, lockKeyRow, updateKey } from '../../store/keys/rows.ts'
import { rowState } from '../../store/keys/state.ts'
import { awaitPropagation, type KeyChange, publishChange } from '../../verification/propagation.ts'
import { reauthorize } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { Caller, Context } from '../context.ts'
import { eventActor, recordEvent } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { keyDaysMaxFor } from '../workspaces/policy.ts'
import { addKey, keyInEvent, newKey, noActiveKey, noSuchKey, revokeActive } from './lifecycle.ts'
import { actingUserId } from './rights.ts'

export async function rotate(ctx: Context, id: string, overlap: Overlap) {
  const { workspaceId, actor } = ctx
  const { rotated, position } = await ctx.store.transaction(async (db) => {
    const workspace = await reauthorize(db, ctx)
    const old = await lockKeyRow(db, { workspaceId, id })
    if (!old || rowState(old) !== 'active') return { rotated: undefined }
    requireOwnKey(old, actor)
    await requireMayRotate(db, old, overlap)
    const now = ctx.clock()
    const daysMax = keyDaysMaxFor(workspace, actor) ?? KEY_DAYS_MAX
    const expiresAt = successorExpiry(old, daysMax, now)
    const successor = newKey(ctx, workspace, { label: old.label, expiresAt, userId: old.user_id, now })
    // Before the successor is added: a key that is revoked does not count against the limit.
    const { change, predecessor } = await retire(db, ctx, old, overlap)
    await addKey(db, ctx, workspace, successor, {
      lineage: { lineage_id: lineageId(old), generation: old.generation + 1 },
    })
    const before = { expiresAt: isoOrNull(old.expires_at) }
    await writeAudit(db, ctx, {
      workspaceId,
      actor,
      action: 'key.rotated',
      target: { id },
      changes: changesBetween(before, { successor: successor.id, expiresAt: predecessor.expiresAt }),
    })
    const { token: _, ...created } = successor
    const key = { ...keyInEvent(old), expiresAt: predecessor.expiresAt }
    const data = { key, successor: created, actor: eventActor(actor) }
    await recordEvent(db, ctx, { workspaceId, type: 'key.rotated', data })
    return { rotated: { ...successor, predecessor }, position: await publishChange(db, ctx, change) }
  })
  if (!rotated) throw await noActiveKey(ctx, id)
  await awaitPropagation(ctx, position)
  return rotated
}

/** A caller who rotates a key gets its successor, and could then act as its user. */
function requireOwnKey({ user_id: userId, agent_access: agentAccess }: KeyRow, actor: Caller): void {
  // The successor would be a key that is valid everywhere.
  if (agentAccess !== null)
    throw new Fault('conflict', {
      message:
        'This is the key of an agent, which gets another one when it signs in again. You can revoke it.',
    })
  if (userId === null || userId === actingUserId(actor)) return
  throw new Fault('conflict', {
    message: 'This is a personal API key, which only its user can rotate. You can revoke it.',
  })
}

/** The list shows the active keys of a lineage together. */
const LINEAGE_KEYS_MAX = 5

const lineageId = ({ lineage_id, id }: KeyRow) => lineage_id ?? id

/** Only the newest active key of a lineage can be rotated, so that no second successor is forgotten. */
async function requireMayRotate(db: Tx, old: KeyRow, overlap: Overlap): Promise<void> {
  const active = await listActiveByLineage(db, old.workspace_id, [lineageId(old)])
  const [newest] = active
  if (newest && newest.id !== old.id)
    throw new Fault('conflict', {
      message:
        `API key ${old.id} was already rotated: its successor is ${newest.id}. Rotate that one, or revoke it ` +
        'first if its raw key was lost.',
    })
  if (overlap !== 'none' && active.length >= LINEAGE_KEYS_MAX)
    throw new Fault('conflict', {
      message:
        `${active.length} keys of this lineage are active, which is the limit. Revoke earlier keys of this ` +
        'lineage first, or rotate without an overlap.',
    })
}

/** The newest active key that replaces it, directly or indirectly. */
export async function findSuccessor(db: Db, key: KeyRow): Promise<KeyRow | undefined> {
  if (key.lineage_id === null) return undefined
  const [newest] = await listActiveByLineage(db, key.workspace_id, [key.lineage_id])
  return newest && newest.generation > key.generation ? newest : undefined
}

/** 0 if the key does not expire. The expiry of a rotated key is the end of its overlap, so it is not used. */
const originalLifetime = ({ lifetime, created_at, expires_at }: KeyRow): number =>
  lifetime ?? (expires_at === null ? 0 : expires_at - created_at)

/** The successor lives as long as the key was meant to, but not longer than the policy allows now. */
function successorExpiry(old: KeyRow, daysMax: number, now: number): string | undefined {
  const lifetime = originalLifetime(old)
  if (lifetime === 0) return undefined
  return toIso(now + Math.min(lifetime, daysMax * DAY_MS))
}

interface Retired {
  change: KeyChange
  predecessor: { id: string; state: 'active' | 'revoked'; expiresAt: string | null }
}

/** Revokes the key, or lets it expire at the end of the overlap unless it expires earlier. */
async function retire(db: Tx, ctx: Context, old: KeyRow, overlap: Overlap): Promise<Retired> {
  const { id, hash, expires_at, now } = old
  const name = { workspaceId: ctx.workspaceId, id }
  await updateKey(db, name, { lineage_id: lineageId(old), lifetime: originalLifetime(old) })
  if (overlap === 'none') {
    const change = await revokeActive(db, ctx, id)
    if (!change) throw noSuchKey(id)
    return { change, predecessor: { id, state: 'revoked', expiresAt: isoOrNull(expires_at) } }
  }
  const end = Math.ceil((now + overlapHours[overlap] * HOUR_MS) / SECOND_MS) * SECOND_MS
  const expiresAt = Math.min(end, expires_at ?? end)
  await updateKey(db, name, { expires_at: expiresAt })
  return {
    change: { kind: 'key-expiry', subjectId: id, hash, expiresAt },
    predecessor: { id, state: 'active', expiresAt: toIso(expiresAt) },
  }
}
