// Basic authentication (RFC 7617) against a password hash. The first request with the right credential waits
// for a slow hash; the credential is then accepted by its HMAC, so that further requests cost little and no
// flood of wrong ones delays them.
import { isUtf8 } from 'node:buffer'
import { createHmac, createSecretKey, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { isBasicAuthPassword, isBasicAuthUser, normalizeText } from '../../lib/credentials/basic-auth.ts'
import { isPasswordHash, verifyPassword } from '../../lib/credentials/password-hash.ts'
import { ClientLimit } from '../../lib/net/client-limit.ts'
import { ipPrefix } from '../../lib/net/ip-address.ts'
import { TokenBuckets } from '../../lib/token-buckets.ts'
import type { VisitorError } from '../error-responses/causes.ts'
import { busy, tooManyAttempts, unauthorized } from './denial.ts'
import { HashQueue, type TunnelRef } from './hash-queue.ts'

/** Room for the longest user and password in base64. */
const CREDENTIAL_CHARS_MAX = 1_100
const BASIC = /^Basic +([A-Za-z0-9+/]+={0,2})$/i
/** Verifications of one client in the queue, so that there is room for other clients of the tunnel. */
const VERIFICATIONS_PER_CLIENT = { max: 2, maxPer48: 4 }
/** How many wrong passwords a client may send. */
const ATTEMPTS = { burst: 10, refillMs: 10_000 }
const CLIENTS_MAX = 10_000
const BUSY_RETRY_MS = 1_000
/** How many wrong credentials are cached, to reject them without another hash. */
const REJECTED_MAX = 20

export interface BasicAuthRule {
  readonly user: string
  /** A hash in the format of `hashPassword`. */
  readonly hash: string
}

interface Credential {
  readonly user: string
  readonly password: string
}

/**
 * Undefined if the request has no credential. `invalid` if the credential cannot be right, or if there are
 * several: another parser might use a different one.
 */
export function parseCredential({ rawHeaders }: IncomingMessage): Credential | 'invalid' | undefined {
  let header: string | undefined
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'authorization') continue
    if (header !== undefined) return 'invalid'
    header = rawHeaders[index + 1]
  }
  if (header === undefined) return undefined
  if (header.length > CREDENTIAL_CHARS_MAX) return 'invalid'
  const bytes = Buffer.from(BASIC.exec(header)?.[1] ?? '', 'base64')
  const text = isUtf8(bytes) ? normalizeText(bytes.toString()) : ''
  const colon = text.indexOf(':')
  const credential = { user: text.slice(0, Math.max(colon, 0)), password: text.slice(colon + 1) }
  return isBasicAuthUser(credential.user) && isBasicAuthPassword(credential.password) ? credential : 'invalid'
}

/** Verifies passwords for all tunnels of an edge. */
export class PasswordVerifier {
  readonly #queue = new HashQueue()
  readonly #attempts = new TokenBuckets(CLIENTS_MAX)
  readonly #perClient = new ClientLimit(VERIFICATIONS_PER_CLIENT)
  readonly #key = createSecretKey(randomBytes(32))
  readonly #onWrongPassword: (host: string, address: string | undefined) => void

  constructor(onWrongPassword: (host: string, address: string | undefined) => void) {
    this.#onWrongPassword = onWrongPassword
  }

  digest({ user, password }: Credential): Buffer {
    return createHmac('sha256', this.#key).update(`${user}:${password}`).digest()
  }

  /** Returns a denial if the credential cannot be verified now. */
  verify(
    tunnel: TunnelRef,
    address: string | undefined,
    rule: BasicAuthRule,
    credential: Credential,
  ): Promise<boolean> | VisitorError {
    // At each tunnel, all clients whose address is not known count as one client.
    const client = address ?? tunnel.host
    const attempts = { name: ipPrefix(client, 48), ...ATTEMPTS }
    const retryAfterMs = this.#attempts.take([attempts], performance.now())
    if (retryAfterMs > 0) return tooManyAttempts(retryAfterMs)
    const release = this.#perClient.acquire(client)
    const verified = release ? this.#queue.run(tunnel, () => this.#matches(rule, credential)) : 'limited'
    if (typeof verified === 'string') {
      release?.()
      this.#attempts.refund(attempts)
      return verified === 'full' ? busy(BUSY_RETRY_MS) : tooManyAttempts(BUSY_RETRY_MS)
    }
    return verified.finally(release).then(
      (isRight) => {
        if (isRight) this.#attempts.refund(attempts)
        else this.#onWrongPassword(tunnel.host, address)
        return isRight
      },
      // The password was not verified, so the attempt does not count.
      (error) => {
        this.#attempts.refund(attempts)
        throw error
      },
    )
  }

  /** Takes the same time for a wrong user. */
  async #matches(
    { user, hash }: BasicAuthRule,
    { user: presentedUser, password }: Credential,
  ): Promise<boolean> {
    const isPassword = await verifyPassword(password, hash)
    const digests = [normalizeText(user), presentedUser].map((text) =>
      this.digest({ user: text, password: '' }),
    )
    return timingSafeEqual(...(digests as [Buffer, Buffer])) && isPassword
  }
}

/** The check of one rule at one tunnel. */
export class BasicAuthCheck {
  readonly #rule: BasicAuthRule
  readonly #tunnel: TunnelRef
  readonly #verifier: PasswordVerifier
  readonly #missing: VisitorError
  readonly #wrong: VisitorError
  #accepted: Buffer | undefined
  readonly #rejected = new BoundedMap<string, true>(REJECTED_MAX)
  readonly #pending = new Map<string, Promise<VisitorError | undefined>>()

  constructor(rule: BasicAuthRule, tunnel: TunnelRef, verifier: PasswordVerifier) {
    this.#rule = rule
    this.#tunnel = tunnel
    this.#verifier = verifier
    this.#missing = unauthorized(tunnel.host, { isWrong: false })
    this.#wrong = unauthorized(tunnel.host, { isWrong: true })
  }

  /** Undefined if the credential is accepted. After a promise of undefined, the next check accepts it. */
  check(
    credential: Credential | 'invalid' | undefined,
    address: string | undefined,
  ): VisitorError | undefined | Promise<VisitorError | undefined> {
    if (credential === undefined) return this.#missing
    if (credential === 'invalid' || !isPasswordHash(this.#rule.hash)) return this.#wrong
    const digest = this.#verifier.digest(credential)
    if (this.#accepted && timingSafeEqual(digest, this.#accepted)) return undefined
    const id = digest.toString('base64')
    if (this.#rejected.has(id)) return this.#wrong
    // Browsers send several requests at the same time.
    const pending = this.#pending.get(id)
    if (pending) return pending
    const result = this.#verifier.verify(this.#tunnel, address, this.#rule, credential)
    if (!(result instanceof Promise)) return result
    const verified = result
      .then((isRight) => {
        if (isRight) this.#accepted = digest
        else this.#rejected.set(id, true)
        return isRight ? undefined : this.#wrong
      })
      .catch(() => busy(BUSY_RETRY_MS))
      .finally(() => this.#pending.delete(id))
    this.#pending.set(id, verified)
    return verified
  }
}
