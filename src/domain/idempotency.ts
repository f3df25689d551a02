// A retry of a creation must return the first answer, which holds a raw key, and yet no raw key may lie in the
// database. So the answer is sealed under a key derived from what only the caller has: the Idempotency-Key and the
// API key it came with. The row's id comes from the same derivation; neither can be had from a copy of the database,
// however guessable the Idempotency-Key was.
import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'

export interface EncryptionKey {
  id: string
  key: Buffer
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

export function deriveEncryptionKey(idempotencyKey: string, apiKey: string): EncryptionKey {
  const bits = Buffer.from(hkdfSync('sha256', apiKey, idempotencyKey, 'adit idempotent answer', 64))
  return { id: bits.subarray(0, 32).toString('hex'), key: bits.subarray(32) }
}

export function encryptResponse(
  seal: EncryptionKey,
  answer: unknown,
  random: (bytes: number) => Uint8Array,
): string {
  const nonce = random(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', seal.key, nonce)
  const body = Buffer.concat([cipher.update(JSON.stringify(answer), 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64')
}

export function decryptResponse<T>(seal: EncryptionKey, sealed: string): T {
  const bytes = Buffer.from(sealed, 'base64')
  const body = NONCE_BYTES + TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', seal.key, bytes.subarray(0, NONCE_BYTES))
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, body))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]).toString('utf8'))
}
