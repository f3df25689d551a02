// Signs users in with a password and, if they have set it up, a two-factor code. Limits of attempts are in
// http/limits.
import { hashSecret } from '../../lib/credentials/secret.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import {
  recordFailedSignIn,
  recordSignIn,
  type SignIn,
  WRONG_CREDENTIALS,
} from '../domain/accounts/sign-ins.ts'
import { findByEmail, findCredentials, findPasswordHash } from '../domain/accounts/users.ts'
import type { Services } from '../domain/context.ts'
import { Fault } from '../domain/fault.ts'
import {
  countFailedCode,
  deleteChallenge,
  findChallenge,
  insertChallenge,
} from '../store/accounts/challenges.ts'
import { lockPassword } from '../store/accounts/passwords.ts'
import { deleteSession, deleteSessions } from '../store/accounts/sessions.ts'
import { deleteTwoFactor, enableTwoFactor } from '../store/accounts/two-factors.ts'
import { lockUser, type UserRow } from '../store/accounts/users.ts'
import type { Tx } from '../store/engine/store.ts'
import { type Browser, createCookie, createToken, type WithCookies } from './cookies.ts'
import { createPasswordHasher } from './passwords.ts'
import { createSessions, type SessionIds } from './sessions.ts'
import { isTotpFormat } from './totp.ts'
import { createTwoFactor } from './two-factor.ts'

export interface AuthSettings {
  services: Services
  /** Signs sessions and encrypts TOTP secrets; must be the same on every node. */
  secret: string
  /** Whether browsers reach the server by https. */
  https: boolean
  onProblem: (level: 'warn' | 'error', message: string) => void
}

/** `userId` is absent if a code is still required. */
export interface SignedIn extends WithCookies<{ next: 'signed_in' | 'code' }> {
  userId?: string
}

export type Auth = ReturnType<typeof createAuth>

/** Between the password and the code. */
const CODE_TIMEOUT_MS = 10 * MINUTE_MS
/** Wrong codes after one correct password; then the user has to enter the password again. */
const CHALLENGE_CODES_MAX = 5

export function createAuth({ services, secret, https, onProblem }: AuthSettings) {
  const { store, clock, random } = services
  const passwords = services.passwordHasher ?? createPasswordHasher(random)
  const sessions = createSessions(services, secret, https)
  const twoFactor = createTwoFactor(services, secret, (message) => onProblem('error', message))
  const challengeCookie = createCookie('two_factor', { https, maxAgeS: CODE_TIMEOUT_MS / 1000 })

  /** Takes the same time for an account without a password. */
  async function isPassword(hash: string | undefined, password: string): Promise<boolean> {
    if (hash !== undefined) return passwords.verify({ hash, password })
    await passwords.hash(password)
    return false
  }

  /** Runs after the response is sent, so that timing does not reveal whether the address has an account. */
  function recordWrongPassword(email: string, { address }: Browser): void {
    setImmediate(async () => {
      try {
        const user = await findByEmail(services, email)
        if (user)
          await store.transaction((db) =>
            recordFailedSignIn(db, services, { user, detail: 'password', address }),
          )
      } catch (error) {
        onProblem('error', `failed to record a failed sign-in: ${(error as Error).message}`)
      }
    })
  }

  async function startSession(db: Tx, browser: Browser, user: UserRow, method: SignIn['method']) {
    const cookie = await sessions.start(db, browser, user.id)
    await recordSignIn(db, services, user, { method, address: browser.address })
    return cookie
  }

  async function startChallenge(db: Tx, userId: string): Promise<string> {
    const token = createToken(random)
    const expiresAt = clock() + CODE_TIMEOUT_MS
    await insertChallenge(db, { hash: hashSecret(token), userId, expiresAt })
    return challengeCookie.set(token)
  }

  /** Undefined if the password was changed or the user disabled while the password was hashed. */
  async function startSignIn(
    db: Tx,
    browser: Browser,
    { userId, passwordHash }: { userId: string; passwordHash: string },
  ): Promise<SignedIn | undefined> {
    if ((await lockPassword(db, userId)) !== passwordHash) return undefined
    const user = await lockUser(db, userId)
    if (user?.disabled_at !== null) return undefined
    if (user.two_factor_enabled === 1)
      return { result: { next: 'code' }, cookies: [await startChallenge(db, userId)] }
    return {
      result: { next: 'signed_in' },
      cookies: [await startSession(db, browser, user, 'password')],
      userId,
    }
  }

  /** Undefined if the code is not accepted, which is recorded. */
  async function finishSignIn(
    db: Tx,
    browser: Browser,
    challenge: string,
    code: string,
  ): Promise<SignedIn | undefined> {
    const method = isTotpFormat(code) ? 'code' : 'recovery-code'
    const userId = (await findChallenge(db, challenge, clock()))?.userId
    const user = userId === undefined ? undefined : await lockUser(db, userId)
    // Read again: another request may have ended the challenge, or counted a wrong code, before the lock.
    const { failedCodes = CHALLENGE_CODES_MAX } =
      (user && (await findChallenge(db, challenge, clock()))) ?? {}
    if (!user) return undefined
    const isOpen = failedCodes < CHALLENGE_CODES_MAX && user.disabled_at === null
    if (!isOpen || !(await twoFactor.verifySignInCode(db, user.id, code))) {
      await countFailedCode(db, challenge)
      await recordFailedSignIn(db, services, { user, detail: method, address: browser.address })
      return undefined
    }
    await deleteChallenge(db, challenge)
    const cookies = [await startSession(db, browser, user, method), challengeCookie.clear]
    return { result: { next: 'signed_in' }, cookies, userId: user.id }
  }

  return {
    readSession: sessions.read,
    /** Starts a session for a user whom an identity provider has authenticated. Returns the cookie to set. */
    startSession: sessions.start,
    clearSession: sessions.clear,
    decryptIdToken: sessions.decryptIdToken,
    hashPassword: passwords.hash,

    async signIn(browser: Browser, address: string, password: string): Promise<SignedIn> {
      const email = address.toLowerCase()
      const account = await findCredentials(services, email)
      const signedIn =
        (await isPassword(account?.passwordHash, password)) &&
        account &&
        (await store.transaction((db) => startSignIn(db, browser, account)))
      if (signedIn) return signedIn
      recordWrongPassword(email, browser)
      throw new Fault('unauthorized', { message: WRONG_CREDENTIALS })
    },

    /** Second step of a sign-in. TOTP codes have six digits, recovery codes do not. */
    async signInWithCode(browser: Browser, typedCode: string): Promise<SignedIn> {
      const token = challengeCookie.readToken(browser.cookie)
      const code = typedCode.replaceAll(' ', '')
      const signedIn =
        token && (await store.transaction((db) => finishSignIn(db, browser, hashSecret(token), code)))
      if (signedIn) return signedIn
      throw new Fault('unauthorized', {
        message: 'This code is incorrect, already used or expired. Wait for the next code, or sign in again.',
      })
    },

    /** Returns the hash that the password was verified against. */
    async requirePassword(userId: string, password: string): Promise<string> {
      const hash = await findPasswordHash(services, userId)
      if (hash !== undefined && (await passwords.verify({ hash, password }))) return hash
      throw new Fault('forbidden', { message: 'Incorrect password.' })
    },

    async beginTwoFactor(db: Tx, userId: string) {
      const user = await lockUser(db, userId)
      if (user?.two_factor_enabled !== 0)
        throw new Fault('conflict', {
          message: 'Two-factor authentication is already on. Turn it off first.',
        })
      return twoFactor.begin(db, user)
    },

    /** Ends all other sessions, which were created without a two-factor code. Returns the cookie to set. */
    async confirmTwoFactor(db: Tx, browser: Browser, userId: string, code: string): Promise<string> {
      await lockUser(db, userId)
      if (!(await twoFactor.confirm(db, userId, code)))
        throw new Fault('forbidden', { message: 'Incorrect code. Wait for the next code and enter that.' })
      await enableTwoFactor(db, userId)
      await deleteSessions(db, userId)
      return sessions.start(db, browser, userId)
    },

    async disableTwoFactor(db: Tx, browser: Browser, { userId, sessionId }: SessionIds): Promise<string> {
      await lockUser(db, userId)
      await deleteTwoFactor(db, userId)
      await deleteSession(db, userId, sessionId)
      return sessions.start(db, browser, userId)
    },
  }
}
