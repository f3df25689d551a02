// The secrets of webhook endpoints. They sign every delivery, so they cannot be hashed; they are encrypted
// with a key that is not in the database.
import { overlapHours } from '../../../lib/credentials/rotation.ts'
import { HOUR_MS } from '../../../lib/time.ts'
import type { Services } from '../context.ts'
import { decrypt, deriveEncryptionKey, encrypt } from '../encryption.ts'

const SECRET_BYTES = 32

export type WebhookSecrets = ReturnType<typeof createWebhookSecrets>

/** `serverSecret` is ADIT_SECRET. */
export function createWebhookSecrets(serverSecret: string, random: Services['random']) {
  const key = deriveEncryptionKey('webhook secrets', serverSecret)
  return {
    /** Creates a secret in the form of Standard Webhooks. */
    create: () => `whsec_${Buffer.from(random(SECRET_BYTES)).toString('base64')}`,
    encrypt: (secret: string): string => encrypt(key, secret, random),
    /** Throws if ADIT_SECRET has changed since the encryption. */
    decrypt: (encrypted: string): string => decrypt<string>(key, encrypted),
  }
}

const OVERLAP_MS_MAX = Math.max(...Object.values(overlapHours)) * HOUR_MS

/** An end further away than the longest overlap was set by a clock that was ahead, and does not count. */
export const isInOverlap = (until: number | null, now: number): boolean =>
  until !== null && until > now && until <= now + OVERLAP_MS_MAX
