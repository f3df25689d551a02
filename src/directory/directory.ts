// The one door at which secrets are checked: who holds which. Answered from memory while the feed vouches for it, and by
// the database otherwise. Whatever is remembered here, the feed tells of its changes.
import { hashSecret, isSecret } from '../domain/secret.ts'
import { findEdgeByHash } from '../store/edges.ts'
import { findKeyByHash } from '../store/keys.ts'
import type { Db, Store } from '../store/store.ts'
import { getWorkspace, type WorkspaceRow } from '../store/workspaces.ts'
import type { Feed } from './feed.ts'
import { createMemory, type Memory } from './memory.ts'
import type { Uses } from './uses.ts'

export interface Refusal {
  valid: false
  reason: 'malformed' | 'unknown' | 'revoked'
}

export interface GoodKey {
  valid: true
  keyId: string
  workspaceId: string
}

export interface GoodEdge {
  valid: true
  edgeId: string
}

/** A refused secret is an answer, not an exception. */
export interface Directory {
  /** Whether the secret is a good key, and whose. A good one counts as used. */
  verifyKey(secret: string): Promise<GoodKey | Refusal>
  verifyEdge(secret: string): Promise<GoodEdge | Refusal>
  getWorkspace(id: string): Promise<WorkspaceRow>
}

const MALFORMED: Refusal = { valid: false, reason: 'malformed' }
const UNKNOWN: Refusal = { valid: false, reason: 'unknown' }
const REVOKED: Refusal = { valid: false, reason: 'revoked' }

export interface DirectoryOptions {
  store: Store
  feed: Feed
  uses: Uses
  /** How many good keys are remembered at the most; of everything else a tenth of it each. */
  keysMax: number
}

export function createDirectory({ store, feed, uses, keysMax }: DirectoryOptions): Directory {
  const othersMax = Math.ceil(keysMax / 10)
  const keys = createMemory<GoodKey>(keysMax)
  const edges = createMemory<GoodEdge>(othersMax)
  const workspaces = createMemory<WorkspaceRow>(othersMax)
  // Apart from the good ones, so that no flood of invented secrets can drive those out.
  const refused = createMemory<Refusal>(othersMax)

  feed.subscribe({
    onChange({ kind, subject_id: id, hash }) {
      if (kind === 'workspace') return workspaces.delete(id)
      keys.delete(hash)
      edges.delete(hash)
      refused.set(hash, REVOKED)
    },
    onLost() {
      for (const memory of [keys, edges, workspaces, refused]) memory.clear()
    },
  })

  /**
   * An answer of the database is remembered only if nothing was heard while it was on its way: it may have been given
   * before a change and arrive after it, and would bring back to life what was revoked.
   */
  async function ask<V>(read: (db: Db) => Promise<V>, remember: (found: V) => void): Promise<V> {
    const before = feed.place()
    const found = await read(store.db)
    if (feed.place() === before) remember(found)
    return found
  }

  async function verify<G extends { valid: true }>(
    hash: string,
    memory: Memory<G>,
    read: (db: Db) => Promise<G | Refusal>,
  ): Promise<G | Refusal> {
    const known = feed.isTrusted() ? (memory.get(hash) ?? refused.get(hash)) : undefined
    if (known) return known
    return ask(read, (verdict) => {
      if (verdict.valid) memory.set(hash, verdict)
      else refused.set(hash, verdict)
    })
  }

  return {
    async verifyKey(secret) {
      if (!isSecret('key', secret)) return MALFORMED
      const hash = hashSecret(secret)
      const verdict = await verify(hash, keys, async (db) =>
        judge(await findKeyByHash(db, hash), (row) => ({
          valid: true,
          keyId: row.id,
          workspaceId: row.workspace_id,
        })),
      )
      if (verdict.valid) uses.mark(verdict.keyId)
      return verdict
    },
    async verifyEdge(secret) {
      if (!isSecret('edge', secret)) return MALFORMED
      const hash = hashSecret(secret)
      return verify(hash, edges, async (db) =>
        judge(await findEdgeByHash(db, hash), (row) => ({ valid: true, edgeId: row.id })),
      )
    },
    async getWorkspace(id) {
      const known = feed.isTrusted() ? workspaces.get(id) : undefined
      return (
        known ??
        ask(
          (db) => getWorkspace(db, id),
          (row) => workspaces.set(id, row),
        )
      )
    },
  }
}

function judge<R extends { revoked_at: number | null }, G>(
  row: R | undefined,
  describe: (row: R) => G,
): G | Refusal {
  if (!row) return UNKNOWN
  return row.revoked_at === null ? describe(row) : REVOKED
}
