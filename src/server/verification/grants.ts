// Grants: an edge that has presented an API key gets one, and needs it to open tunnels with the key, so that
// knowing the id of a key is not enough. A grant is signed with the secret that all nodes share, and is not
// stored. It does not prove that the key is still active; callers must check that.
import { createHmac, createSecretKey, hkdfSync, timingSafeEqual } from 'node:crypto'
import { MINUTE_MS } from '../../lib/time.ts'

/** Edges use a grant for half of this time. */
const VALID_MS = 10 * MINUTE_MS

export interface Grants {
  /** `now` is from the clock of the database. */
  issue(edgeId: string, keyId: string, now: number): string
  /** The ids of the keys for which the edge has a valid grant. */
  findKeys(edgeId: string, grants: Iterable<string>, now: number): ReadonlySet<string>
}

/** `serverSecret` is ADIT_SECRET. */
export function createGrants(serverSecret: string): Grants {
  const secret = createSecretKey(new Uint8Array(hkdfSync('sha256', serverSecret, '', 'adit edge grant', 32)))
  const sign = (edgeId: string, keyId: string, expiry: string) =>
    createHmac('sha256', secret).update(`${edgeId} ${keyId} ${expiry}`).digest()

  function findKey(edgeId: string, grant: string, now: number): string | undefined {
    const [keyId = '', expiry = '', signature = ''] = grant.split('.')
    const signatureBytes = Buffer.from(signature, 'base64url')
    const expected = sign(edgeId, keyId, expiry)
    const isSigned = signatureBytes.length === expected.length && timingSafeEqual(signatureBytes, expected)
    return isSigned && Number.parseInt(expiry, 36) > now ? keyId : undefined
  }

  return {
    issue(edgeId, keyId, now) {
      const expiry = Math.floor(now + VALID_MS).toString(36)
      return `${keyId}.${expiry}.${sign(edgeId, keyId, expiry).toString('base64url')}`
    },
    findKeys(edgeId, grants, now) {
      const keyIds = new Set<string>()
      for (const grant of grants) {
        const keyId = findKey(edgeId, grant, now)
        if (keyId !== undefined) keyIds.add(keyId)
      }
      return keyIds
    },
  }
}
