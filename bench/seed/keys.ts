// Real keys, created once per run: every database contains the first ones of the same list.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createSecret, hashSecret } from '../../src/lib/credentials/secret.ts'

export interface SeededKeys {
  /** One key a line. */
  file: string
  keys: string[]
  hashes: string[]
  edge: { token: string; hash: string }
}

/** Databases with more keys get random hashes for the others. */
export const SEEDED_KEYS = 100_000

export function createKeys(file: string, count: number): SeededKeys {
  const keys = Array.from({ length: count }, () => createSecret('key', randomBytes))
  writeFileSync(file, `${keys.join('\n')}\n`, { mode: 0o600 })
  const token = createSecret('edge', randomBytes)
  return { file, keys, hashes: keys.map(hashSecret), edge: { token, hash: hashSecret(token) } }
}
