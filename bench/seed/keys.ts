// Real keys, minted once for a run: every database of it holds the first ones of the same list.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { createSecret, hashSecret } from '../../src/credentials/secret.ts'

export interface Minted {
  /** One key a line. */
  file: string
  keys: string[]
  hashes: string[]
  edge: { token: string; hash: string }
}

/** Keys beyond that lie in a database only to be in the way. */
export const MINTED = 100_000

export function mintKeys(file: string): Minted {
  const keys = Array.from({ length: MINTED }, () => createSecret('key', randomBytes))
  writeFileSync(file, `${keys.join('\n')}\n`, { mode: 0o600 })
  const token = createSecret('edge', randomBytes)
  return { file, keys, hashes: keys.map(hashSecret), edge: { token, hash: hashSecret(token) } }
}
