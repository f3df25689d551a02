// A valid key in responses to edges.
import type { CredentialVerifier, ValidKey } from '../../verification/verify.ts'

export function describeValidKey(verifier: Pick<CredentialVerifier, 'remainingMs'>, key: ValidKey) {
  const { keyId, expiresAt } = key
  if (expiresAt === null) return { valid: true as const, keyId }
  return {
    valid: true as const,
    keyId,
    expiresAt: new Date(expiresAt).toISOString(),
    expiresInMs: verifier.remainingMs(key),
  }
}
