// Signing in, by better-auth, behind verbs of our own: it is called, never mounted, so that every route, answer and fault
// stays the contract's. It is loaded shortly after the start.
import { betterAuth } from 'better-auth/minimal'
import { findByEmail, passwordOf, SESSION_MS_MAX } from '../domain/accounts.ts'
import { Fault } from '../domain/fault.ts'
import {
  consumeCode,
  recordFailedSignIn,
  recordSignIn,
  requireSamePassword,
  WRONG_CREDENTIALS,
} from '../domain/sign-ins.ts'
import { deleteSession, deleteSessions } from '../store/sessions.ts'
import type { Tx } from '../store/store.ts'
import { findUser, type UserRow } from '../store/users.ts'
import { AuthFailed, unmasked, within } from './adapter.ts'
import { type Browser, cookiesNamed, headersOf } from './browser.ts'
import { type AuthSettings, authOptions } from './options.ts'

/** An answer, and the cookies that come with it. */
export interface WithCookies<T> {
  result: T
  cookies: string[]
}

export interface Signed {
  userId: string
  sessionId: string
}

export type Auth = ReturnType<typeof createAuth>

const WRONG_PASSWORD = 'The password is wrong.'

export function createAuth(settings: AuthSettings) {
  const { services } = settings
  const auth = betterAuth(authOptions(settings))

  /** Calls better-auth; undefined where it refuses. What goes wrong inside is thrown. */
  async function ask<T>(call: () => Promise<Response>): Promise<WithCookies<T> | undefined> {
    const response = await unmasked(call)
    if (response.status >= 500) throw new AuthFailed(`better-auth failed: ${await response.text()}`)
    if (!response.ok) return undefined
    return { result: (await response.json()) as T, cookies: response.headers.getSetCookie() }
  }

  /** What was encrypted under another secret cannot be read any more: not the person's mistake, nor a code's. */
  function tellOfLostSecret(error: unknown): never {
    if (!(error instanceof AuthFailed)) throw error
    settings.onTrouble('error', `A second factor cannot be read; was ADIT_SECRET changed? ${error.message}`)
    throw new Fault('unauthorized', {
      message: 'Your second factor cannot be checked. Ask the operator of this server to remove it.',
    })
  }

  const recordFailed = (failed: Parameters<typeof recordFailedSignIn>[2]) =>
    services.store.transaction((db) => recordFailedSignIn(db, services, failed))

  /** Once the answer is on its way: how long it takes must not tell whether the address is known. */
  function recordWrongPassword(user: UserRow, { address }: Browser): void {
    setImmediate(() => {
      recordFailed({ user, detail: 'password', address }).catch((error) =>
        settings.onTrouble('error', `A failed sign-in could not be recorded: ${error.message}`),
      )
    })
  }

  async function signIn(browser: Browser, given: string, password: string) {
    const email = given.toLowerCase()
    const user = await findByEmail(services, email)
    const before = user && (await passwordOf(services, user.id))
    const headers = headersOf(browser)
    const answer = await ask<{ twoFactorRedirect?: true }>(() =>
      auth.api.signInEmail({ body: { email, password }, headers, asResponse: true }),
    )
    if (!answer && user) recordWrongPassword(user, browser)
    if (!answer || !user) throw new Fault('unauthorized', { message: WRONG_CREDENTIALS })
    const next = answer.result.twoFactorRedirect ? ('code' as const) : ('signed_in' as const)
    const { address } = browser
    const signedIn = next === 'signed_in' ? ({ method: 'password', address } as const) : undefined
    await requireSamePassword(services, user.id, before, signedIn)
    return { result: { next }, cookies: answer.cookies }
  }

  async function findCodeOwner(db: Tx, headers: Headers): Promise<UserRow | undefined> {
    const { userId } = await auth.api.findCodeOwner({ headers })
    return userId === null ? undefined : findUser(db, userId)
  }

  return {
    signIn,

    hashPassword: async (password: string): Promise<string> => (await auth.$context).password.hash(password),

    /** Throws where the password is not the one that the hash was made of. */
    async requirePassword(hash: string | undefined, password: string): Promise<string> {
      const { password: passwords } = await auth.$context
      if (hash !== undefined && (await passwords.verify({ hash, password }))) return hash
      throw new Fault('forbidden', { message: WRONG_PASSWORD })
    },

    /** Who is signed in; undefined where nobody is. */
    async readSession(browser: Browser): Promise<WithCookies<Signed> | undefined> {
      if (browser.cookie === '') return undefined
      const headers = headersOf(browser)
      const { response: found, headers: sent } = await unmasked(() =>
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

    /** The second step. An authenticator's code has six digits, a recovery code has not. */
    async giveCode(browser: Browser, given: string) {
      // Of whoever owes a code, not of whoever is signed in: a session does other things with it.
      const headers = headersOf({ ...browser, cookie: cookiesNamed(browser.cookie, /two_factor$/) })
      const code = given.replaceAll(' ', '')
      const method = /^\d{6}$/.test(code) ? ('code' as const) : ('recovery-code' as const)
      const verify = method === 'code' ? auth.api.verifyTOTP : auth.api.verifyBackupCode
      const { address } = browser
      const attempt = async (db: Tx) => {
        const user = await findCodeOwner(db, headers)
        const accepted = await ask<object>(() => verify({ body: { code }, headers, asResponse: true })).catch(
          tellOfLostSecret,
        )
        // Refused is committed, because it was counted; what was used before is undone, session and all.
        if (!accepted && user) await recordFailedSignIn(db, services, { user, detail: method, address })
        if (!accepted || !user) return undefined
        if (!(await consumeCode(db, services, user.id, code))) throw new UsedBefore(user)
        await recordSignIn(db, services, user, { method, address })
        return accepted
      }
      const answer = await services.store
        .transaction((db) => within(db, () => attempt(db)))
        .catch(async (error) => {
          if (!(error instanceof UsedBefore)) throw error
          await recordFailed({ user: error.user, detail: method, address })
        })
      if (!answer) throw wrongCode()
      return { result: { next: 'signed_in' as const }, cookies: answer.cookies }
    },

    /** For somebody who has proven elsewhere who they are. Answers with the cookies. */
    async startSession(db: Tx, browser: Browser, userId: string): Promise<string[]> {
      const answer = await within(db, () =>
        ask(() => auth.api.startSession({ body: { userId }, headers: headersOf(browser), asResponse: true })),
      )
      if (!answer) throw new AuthFailed('better-auth made no session')
      return answer.cookies
    },

    async signOut(db: Tx, browser: Browser): Promise<string[]> {
      const answer = await within(db, () =>
        ask(() => auth.api.signOut({ headers: headersOf(browser), asResponse: true })),
      )
      return answer?.cookies ?? []
    },

    async beginSecondFactor(db: Tx, browser: Browser, password: string) {
      const call = () =>
        ask<{ totpURI: string; backupCodes: string[] }>(() =>
          auth.api.enableTwoFactor({ body: { password }, headers: headersOf(browser), asResponse: true }),
        )
      const answer = await within(db, call)
      if (!answer) throw new Fault('forbidden', { message: WRONG_PASSWORD })
      const { totpURI: uri, backupCodes: recoveryCodes } = answer.result
      const secret = new URL(uri).searchParams.get('secret') ?? ''
      return { result: { uri, secret, recoveryCodes }, cookies: answer.cookies }
    },

    /** Ends the other sessions: they began without it. */
    async confirmSecondFactor(
      db: Tx,
      browser: Browser,
      { userId, sessionId, code }: Signed & { code: string },
    ): Promise<string[]> {
      await deleteSessions(db, userId, sessionId)
      const call = () =>
        ask(() => auth.api.verifyTOTP({ body: { code }, headers: headersOf(browser), asResponse: true }))
      const answer = await within(db, call)
      if (!answer || !(await consumeCode(db, services, userId, code)))
        throw new Fault('forbidden', { message: 'This code is wrong. Take the next one.' })
      return answer.cookies
    },

    async removeSecondFactor(db: Tx, browser: Browser, password: string): Promise<string[]> {
      const call = () =>
        ask(() =>
          auth.api.disableTwoFactor({ body: { password }, headers: headersOf(browser), asResponse: true }),
        )
      const answer = await within(db, call)
      if (!answer) throw new Fault('forbidden', { message: WRONG_PASSWORD })
      return answer.cookies
    },
  }
}

/** A code that was right, but not for the first time. */
class UsedBefore extends Error {
  readonly user: UserRow
  constructor(user: UserRow) {
    super('this code was used before')
    this.user = user
  }
}

const wrongCode = () =>
  new Fault('unauthorized', {
    message: 'This code is wrong, was used before or came too late. Take the next one, or begin again.',
  })
