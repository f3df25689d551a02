// The one door at which keys are checked: who holds which key. Behind it lies, for now, the database itself, so a
// revocation holds from the moment it is committed.
import { hashSecret, isSecret } from '../domain/secret.ts'
import { findKeyByHash } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { Uses } from './uses.ts'

/** A refused key is an answer, not an exception. */
export type Verdict =
  | { valid: true; keyId: string; workspaceId: string }
  | { valid: false; reason: 'malformed' | 'unknown' | 'revoked' }

export interface Directory {
  /** Whether the secret is a good key, and whose. A good one counts as used. */
  verify(secret: string): Promise<Verdict>
}

export function createDirectory(store: Store, uses: Uses): Directory {
  return {
    async verify(secret) {
      if (!isSecret('key', secret)) return { valid: false, reason: 'malformed' }
      const key = await findKeyByHash(store.db, hashSecret(secret))
      if (!key) return { valid: false, reason: 'unknown' }
      if (key.revoked_at !== null) return { valid: false, reason: 'revoked' }
      uses.mark(key.id)
      return { valid: true, keyId: key.id, workspaceId: key.workspace_id }
    },
  }
}
