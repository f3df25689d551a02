// Encrypts stored values with a key derived from a secret that is not stored, so that a copy of the database
// cannot be decrypted: idempotent responses, which contain a raw API key, and webhook secrets.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto'

export interface EncryptionKey {
  /** Identifies the context. Derived with the secret, so it cannot be computed from a guessable context. */
  id: string
  key: Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** The context is public and identifies what is encrypted: an Idempotency-Key, or a fixed text. */
export function deriveEncryptionKey(context: string, secret: string): EncryptionKey {
  const bits = Buffer.from(hkdfSync('sha256', secret, context, 'adit encryption', 64))
  return { id: bits.subarray(0, 32).toString('hex'), key: bits.subarray(32) }
}

/** A hash that cannot be computed, and so not guessed, without the secret. */
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
