// A valid key in responses to edges.
import type { Directory, ValidKey } from '../../directory/verify.ts'

export function describeValidKey(directory: Pick<Directory, 'remainingMs'>, key: ValidKey) {
  const { keyId, expiresAt } = key
  if (expiresAt === null) return { valid: true as const, keyId }
  return {
    valid: true as const,
    keyId,
    expiresAt: new Date(expiresAt).toISOString(),
    expiresInMs: directory.remainingMs(key),
  }
}
