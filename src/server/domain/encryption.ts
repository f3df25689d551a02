// Encryption of values that are stored, with a key derived from a secret that is not: responses that are
// repeated, which contain a raw API key, and the secrets of webhooks. A copy of the database cannot be
// decrypted.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'

interface EncryptionKey {
  /** Derived like the key: it cannot be computed from the context alone, even if that is guessable. */
  id: string
  key: Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** The context is not secret, and names what is encrypted: an Idempotency-Key, or a fixed text. */
export function deriveEncryptionKey(context: string, secret: string): EncryptionKey {
  const bits = Buffer.from(hkdfSync('sha256', secret, context, 'adit idempotent answer', 64))
  return { id: bits.subarray(0, 32).toString('hex'), key: bits.subarray(32) }
}

/** A hash that can be neither computed nor tried without the secret. */
export function deriveKeyedHash(context: string, secret: string): (text: string) => string {
  const { key } = deriveEncryptionKey(context, secret)
  return (text) => createHmac('sha256', key).update(text).digest('hex')
}

export function encrypt(
  { key }: EncryptionKey,
  value: unknown,
  random: (bytes: number) => Uint8Array,
): string {
  const nonce = random(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const body = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
}

export function decrypt<T>({ key }: EncryptionKey, encrypted: string): T {
  const bytes = Buffer.from(encrypted, 'base64')
  const body = NONCE_BYTES + TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES))
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, body))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]).toString('utf8'))
}
