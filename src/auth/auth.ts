// Signing in, by better-auth, behind verbs of our own: it is called, never mounted, so that every route, answer and fault
// stays the contract's. It is loaded when somebody first opens the dashboard.
import { betterAuth } from 'better-auth/minimal'
import { SESSION_MS_MAX, takeCode } from '../domain/accounts.ts'
import { Fault } from '../domain/fault.ts'
import { deleteSession } from '../store/sessions.ts'
import type { Db } from '../store/store.ts'
import { within } from './adapter.ts'
import { type Browser, headersOf } from './browser.ts'
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

const WRONG = 'The e-mail address or the password is wrong.'
const WRONG_PASSWORD = 'The password is wrong.'

export function createAuth(settings: AuthSettings) {
  const { world } = settings
  const auth = betterAuth(authOptions(settings))

  /** Calls better-auth; undefined where it refuses. What goes wrong inside is thrown. */
  async function ask<T>(call: Promise<Response>): Promise<WithCookies<T> | undefined> {
    const response = await call
    if (response.status >= 500) throw new Error(`better-auth failed: ${await response.text()}`)
    if (!response.ok) return undefined
    return { result: (await response.json()) as T, cookies: response.headers.getSetCookie() }
  }

  async function signIn(browser: Browser, email: string, password: string) {
    const body = { email: email.toLowerCase(), password }
    const headers = headersOf(browser)
    const answer = await ask<{ twoFactorRedirect?: true }>(
      auth.api.signInEmail({ body, headers, asResponse: true }),
    )
    if (!answer) throw new Fault('unauthorized', { message: WRONG })
    const next = answer.result.twoFactorRedirect ? ('code' as const) : ('signed_in' as const)
    return { result: { next }, cookies: answer.cookies }
  }

  return {
    signIn,

    hashPassword: async (password: string): Promise<string> => (await auth.$context).password.hash(password),

    /** Who is signed in; undefined where nobody is. */
    async readSession(browser: Browser): Promise<WithCookies<Signed> | undefined> {
      if (browser.cookie === '') return undefined
      const headers = headersOf(browser)
      const { response: found, headers: sent } = await auth.api.getSession({ headers, returnHeaders: true })
      if (!found) return undefined
      const { id: sessionId, userId, createdAt } = found.session
      if (world.clock() - createdAt.getTime() > SESSION_MS_MAX) {
        await world.store.transaction((db) => deleteSession(db, userId, sessionId))
        return undefined
      }
      return { result: { userId, sessionId }, cookies: sent.getSetCookie() }
    },

    /** The second step. An authenticator's code has six digits, a recovery code has not. */
    async giveCode(browser: Browser, given: string) {
      const headers = headersOf(browser)
      const code = given.replaceAll(' ', '')
      const isTotp = /^\d{6}$/.test(code)
      const answer = await world.store.transaction((db) =>
        within(db, async () => {
          const accepted = await ask<{ user: { id: string } }>(
            isTotp
              ? auth.api.verifyTOTP({ body: { code }, headers, asResponse: true })
              : auth.api.verifyBackupCode({ body: { code }, headers, asResponse: true }),
          )
          // Refused is committed, because it was counted; what was used before is undone, session and all.
          if (accepted && !(await takeCode(db, world, accepted.result.user.id, code))) throw wrongCode()
          return accepted
        }),
      )
      if (!answer) throw wrongCode()
      return { result: { next: 'signed_in' as const }, cookies: answer.cookies }
    },

    async signOut(browser: Browser): Promise<string[]> {
      const answer = await ask(auth.api.signOut({ headers: headersOf(browser), asResponse: true }))
      return answer?.cookies ?? []
    },

    /** As a part of a transaction that writes it down. Ends the other sessions. */
    async changePassword(db: Db, browser: Browser, current: string, password: string): Promise<string[]> {
      const body = { currentPassword: current, newPassword: password, revokeOtherSessions: true }
      const call = () => ask(auth.api.changePassword({ body, headers: headersOf(browser), asResponse: true }))
      const answer = await within(db, call)
      if (!answer) throw new Fault('forbidden', { message: WRONG_PASSWORD })
      return answer.cookies
    },

    async beginSecondFactor(db: Db, browser: Browser, password: string) {
      const call = () =>
        ask<{ totpURI: string; backupCodes: string[] }>(
          auth.api.enableTwoFactor({ body: { password }, headers: headersOf(browser), asResponse: true }),
        )
      const answer = await within(db, call)
      if (!answer) throw new Fault('forbidden', { message: WRONG_PASSWORD })
      const { totpURI: uri, backupCodes: recoveryCodes } = answer.result
      const secret = new URL(uri).searchParams.get('secret') ?? ''
      return { result: { uri, secret, recoveryCodes }, cookies: answer.cookies }
    },

    async confirmSecondFactor(db: Db, browser: Browser, code: string): Promise<string[]> {
      const call = () =>
        ask(auth.api.verifyTOTP({ body: { code }, headers: headersOf(browser), asResponse: true }))
      const answer = await within(db, call)
      if (!answer) throw new Fault('forbidden', { message: 'This code is wrong. Take the next one.' })
      return answer.cookies
    },

    async removeSecondFactor(db: Db, browser: Browser, password: string): Promise<string[]> {
      const call = () =>
        ask(auth.api.disableTwoFactor({ body: { password }, headers: headersOf(browser), asResponse: true }))
      const answer = await within(db, call)
      if (!answer) throw new Fault('forbidden', { message: WRONG_PASSWORD })
      return answer.cookies
    },
  }
}

const wrongCode = () =>
  new Fault('unauthorized', {
    message: 'This code is wrong, was used before or came too late. Take the next one, or begin again.',
  })
