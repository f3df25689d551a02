// The one door at which secrets are checked: who holds which. Behind it lies, for now, the database itself, so a
// revocation holds from the moment it is committed.
import { hashSecret, isSecret } from '../domain/secret.ts'
import { findEdgeByHash } from '../store/edges.ts'
import { findKeyByHash } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
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
}

export function createDirectory(store: Store, uses: Uses): Directory {
  return {
    async verifyKey(secret) {
      if (!isSecret('key', secret)) return { valid: false, reason: 'malformed' }
      const key = await findKeyByHash(store.db, hashSecret(secret))
      if (!key) return { valid: false, reason: 'unknown' }
      if (key.revoked_at !== null) return { valid: false, reason: 'revoked' }
      uses.mark(key.id)
      return { valid: true, keyId: key.id, workspaceId: key.workspace_id }
    },
    async verifyEdge(secret) {
      if (!isSecret('edge', secret)) return { valid: false, reason: 'malformed' }
      const edge = await findEdgeByHash(store.db, hashSecret(secret))
      if (!edge) return { valid: false, reason: 'unknown' }
      if (edge.revoked_at !== null) return { valid: false, reason: 'revoked' }
      return { valid: true, edgeId: edge.id }
    },
  }
}
