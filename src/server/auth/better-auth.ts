// Authentication of users with better-auth. It is called as a library and its routes are not exposed, so that
// every route, response and error is defined by the contract. Loaded shortly after the start.
import { betterAuth } from 'better-auth/minimal'
import {
  consumeCode,
  recordFailedSignIn,
  recordSignIn,
  requireSamePassword,
  WRONG_CREDENTIALS,
} from '../domain/accounts/sign-ins.ts'
import { findByEmail, passwordOf } from '../domain/accounts/users.ts'
import { SESSION_MS_MAX } from '../domain/actors.ts'
import { Fault } from '../domain/fault.ts'
import { deleteSession, deleteSessions } from '../store/accounts/sessions.ts'
import { findUser, type UserRow } from '../store/accounts/users.ts'
import type { Tx } from '../store/engine/store.ts'
import { BetterAuthError, rethrowDatabaseErrors, withTransaction } from './adapter.ts'
import { type Browser, cookiesNamed, headersOf } from './browser.ts'
import { type AuthSettings, authOptions } from './options.ts'

/** A result and the cookies to set. */
export interface WithCookies<T> {
  result: T
  cookies: string[]
}

interface SessionIds {
  userId: string
  sessionId: string
}

export type Auth = ReturnType<typeof createAuth>

const WRONG_PASSWORD = 'Incorrect password.'

export function createAuth(settings: AuthSettings) {
  const { services } = settings
  const auth = betterAuth(authOptions(settings))

  /** Calls better-auth; undefined if it rejects the request. Internal errors are thrown. */
  async function request<T>(call: () => Promise<Response>): Promise<WithCookies<T> | undefined> {
    const response = await rethrowDatabaseErrors(call)
    if (response.status >= 500) throw new BetterAuthError(`better-auth failed: ${await response.text()}`)
    if (!response.ok) return undefined
    return { result: (await response.json()) as T, cookies: response.headers.getSetCookie() }
  }

  /** A TOTP secret that was encrypted with another ADIT_SECRET cannot be decrypted. */
  function onUnreadableSecret(error: unknown): never {
    if (!(error instanceof BetterAuthError)) throw error
    settings.onProblem(
      'error',
      `cannot decrypt a two-factor secret; was ADIT_SECRET changed? ${error.message}`,
    )
    throw new Fault('unauthorized', {
      message:
        'Two-factor authentication of your account failed. Ask the operator of this server to reset it.',
    })
  }

  const recordFailed = (failed: Parameters<typeof recordFailedSignIn>[2]) =>
    services.store.transaction((db) => recordFailedSignIn(db, services, failed))

  /** Runs after the response is sent, so that timing does not reveal whether the address has an account. */
  function recordWrongPassword(user: UserRow, { address }: Browser): void {
    setImmediate(() => {
      recordFailed({ user, detail: 'password', address }).catch((error) =>
        settings.onProblem('error', `failed to record a failed sign-in: ${error.message}`),
      )
    })
  }

  async function signIn(browser: Browser, given: string, password: string) {
    const email = given.toLowerCase()
    const user = await findByEmail(services, email)
    const before = user && (await passwordOf(services, user.id))
    const headers = headersOf(browser)
    const response = await request<{ twoFactorRedirect?: true }>(() =>
      auth.api.signInEmail({ body: { email, password }, headers, asResponse: true }),
    )
    if (!response && user) recordWrongPassword(user, browser)
    if (!response || !user) throw new Fault('unauthorized', { message: WRONG_CREDENTIALS })
    const next = response.result.twoFactorRedirect ? ('code' as const) : ('signed_in' as const)
    const { address } = browser
    const signedIn = next === 'signed_in' ? ({ method: 'password', address } as const) : undefined
    await requireSamePassword(services, user.id, before, signedIn)
    return { result: { next }, cookies: response.cookies }
  }

  async function findCodeOwner(db: Tx, headers: Headers): Promise<UserRow | undefined> {
    const { userId } = await auth.api.findCodeOwner({ headers })
    return userId === null ? undefined : findUser(db, userId)
  }

  return {
    signIn,

    hashPassword: async (password: string): Promise<string> => (await auth.$context).password.hash(password),

    /** Throws if the password does not match the hash. */
    async requirePassword(hash: string | undefined, password: string): Promise<string> {
      const { password: passwords } = await auth.$context
      if (hash !== undefined && (await passwords.verify({ hash, password }))) return hash
      throw new Fault('forbidden', { message: WRONG_PASSWORD })
    },

    /** The session of the browser's cookie; undefined if it is not signed in. */
    async readSession(browser: Browser): Promise<WithCookies<SessionIds> | undefined> {
      if (browser.cookie === '') return undefined
      const headers = headersOf(browser)
      const { response: found, headers: sent } = await rethrowDatabaseErrors(() =>
        auth.api.getSession({ headers, returnHeaders: true }),
      )
      if (!found) return undefined
      const { id: sessionId, userId, createdAt } = found.session
      if (services.clock() - createdAt.getTime() > SESSION_MS_MAX) {
        await services.store.transaction((db) => deleteSession(db, userId, sessionId))
        return undefined
      }
      return { result: { userId, sessionId }, cookies: sent.getSetCookie() }
    },

    /** Second step of a sign-in. TOTP codes have six digits, recovery codes do not. */
    async signInWithCode(browser: Browser, given: string) {
      // Without a session cookie, because better-auth treats codes of signed-in users differently.
      const headers = headersOf({ ...browser, cookie: cookiesNamed(browser.cookie, /two_factor$/) })
      const code = given.replaceAll(' ', '')
      const method = /^\d{6}$/.test(code) ? ('code' as const) : ('recovery-code' as const)
      const verify = method === 'code' ? auth.api.verifyTOTP : auth.api.verifyBackupCode
      const { address } = browser
      const attempt = async (db: Tx) => {
        const user = await findCodeOwner(db, headers)
        const accepted = await request<object>(() =>
          verify({ body: { code }, headers, asResponse: true }),
        ).catch(onUnreadableSecret)
        // A rejected code is committed, because it counts as an attempt; a reused code rolls back, including
        // the session.
        if (!accepted && user) await recordFailedSignIn(db, services, { user, detail: method, address })
        if (!accepted || !user) return undefined
        if (!(await consumeCode(db, services, user.id, code))) throw new CodeReused(user)
        await recordSignIn(db, services, user, { method, address })
        return accepted
      }
      const response = await services.store
        .transaction((db) => withTransaction(db, () => attempt(db)))
        .catch(async (error) => {
          if (!(error instanceof CodeReused)) throw error
          await recordFailed({ user: error.user, detail: method, address })
        })
      if (!response) throw wrongCode()
      return { result: { next: 'signed_in' as const }, cookies: response.cookies }
    },

    /** For a user who was authenticated by an identity provider. Returns the cookies to set. */
    async startSession(db: Tx, browser: Browser, userId: string): Promise<string[]> {
      const response = await withTransaction(db, () =>
        request(() =>
          auth.api.startSession({ body: { userId }, headers: headersOf(browser), asResponse: true }),
        ),
      )
      if (!response) throw new BetterAuthError('better-auth created no session')
      return response.cookies
    },

    async signOut(db: Tx, browser: Browser): Promise<string[]> {
      const response = await withTransaction(db, () =>
        request(() => auth.api.signOut({ headers: headersOf(browser), asResponse: true })),
      )
      return response?.cookies ?? []
    },

    async beginTwoFactor(db: Tx, browser: Browser, password: string) {
      const call = () =>
        request<{ totpURI: string; backupCodes: string[] }>(() =>
          auth.api.enableTwoFactor({ body: { password }, headers: headersOf(browser), asResponse: true }),
        )
      const response = await withTransaction(db, call)
      if (!response) throw new Fault('forbidden', { message: WRONG_PASSWORD })
      const { totpURI: uri, backupCodes: recoveryCodes } = response.result
      const secret = new URL(uri).searchParams.get('secret') ?? ''
      return { result: { uri, secret, recoveryCodes }, cookies: response.cookies }
    },

    /** Ends all other sessions, which were created without a two-factor code. */
    async confirmTwoFactor(
      db: Tx,
      browser: Browser,
      { userId, sessionId, code }: SessionIds & { code: string },
    ): Promise<string[]> {
      await deleteSessions(db, userId, sessionId)
      const call = () =>
        request(() => auth.api.verifyTOTP({ body: { code }, headers: headersOf(browser), asResponse: true }))
      const response = await withTransaction(db, call)
      if (!response || !(await consumeCode(db, services, userId, code)))
        throw new Fault('forbidden', { message: 'Incorrect code. Wait for the next code and enter that.' })
      return response.cookies
    },

    async disableTwoFactor(db: Tx, browser: Browser, password: string): Promise<string[]> {
      const call = () =>
        request(() =>
          auth.api.disableTwoFactor({ body: { password }, headers: headersOf(browser), asResponse: true }),
        )
      const response = await withTransaction(db, call)
      if (!response) throw new Fault('forbidden', { message: WRONG_PASSWORD })
      return response.cookies
    },
  }
}

/** A correct code that was used before. */
class CodeReused extends Error {
  readonly user: UserRow
  constructor(user: UserRow) {
    super('this code was used before')
    this.user = user
  }
}

const wrongCode = () =>
  new Fault('unauthorized', {
    message: 'This code is incorrect, already used or expired. Wait for the next code, or sign in again.',
  })
