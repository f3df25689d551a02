// Access of browsers: a token of a link is exchanged for a bearer, once. Both are kept as hashes only.
import { createHash, randomBytes } from 'node:crypto'
import { LIMITS } from '../api.ts'

/** Links that were not used; a new one replaces the oldest. */
const TOKENS_MAX = 10

const createSecret = () => randomBytes(32).toString('base64url')
/** Secrets are compared by their hashes, so the time of a lookup says nothing about them. */
const hash = (secret: string) => createHash('sha256').update(secret).digest('base64')

export class Sessions {
  readonly #tokens = new Set<string>()
  readonly #bearers = new Set<string>()

  /** A token for the fragment of a link. */
  createToken(): string {
    return this.#create(this.#tokens, TOKENS_MAX)
  }

  /** Undefined if the token is unknown, or was used. */
  exchange(token: string): string | undefined {
    if (!this.#tokens.delete(hash(token))) return undefined
    return this.#create(this.#bearers, LIMITS.sessions)
  }

  accepts(authorization: string | undefined): boolean {
    const [, bearer] = /^Bearer ([\w-]{43})$/.exec(authorization ?? '') ?? []
    return bearer !== undefined && this.#bearers.has(hash(bearer))
  }

  #create(hashes: Set<string>, max: number): string {
    const secret = createSecret()
    hashes.add(hash(secret))
    const [oldest] = hashes
    if (hashes.size > max && oldest !== undefined) hashes.delete(oldest)
    return secret
  }
}
