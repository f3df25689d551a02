// Under which names attempts to sign in are counted, and how many are allowed.
import type { Auth, WithCookies } from '../auth/auth.ts'
import type { Browser } from '../auth/browser.ts'
import { credentialsOf, passwordOf } from '../domain/accounts.ts'
import type { World } from '../domain/context.ts'
import { ipPrefix } from '../net/ip-address.ts'
import type { Account, KnownBrowsers } from './known-browser.ts'
import type { Limits } from './login-throttle.ts'

const NOBODY: Account = { userId: '', passwordHash: '' }

export function createSignInLimits(world: World, known: KnownBrowsers, auth: () => Promise<Auth>) {
  async function accountOf(userId: string): Promise<Account | undefined> {
    const passwordHash = await passwordOf(world, userId)
    return passwordHash === undefined ? undefined : { userId, passwordHash }
  }

  /** Names the browser where somebody signed in to that account with it before. */
  async function findKnown({ cookie }: Browser, email: string): Promise<string | undefined> {
    if (!known.hasMarks(cookie)) return undefined
    const account = await credentialsOf(world, email)
    // For an unknown address the same work is done, so that its time does not tell.
    const found = known.find(cookie, account ?? NOBODY)
    return account && found
  }

  return {
    // A known browser is counted by itself alone. Others by account and by network: one account is guessed from many
    // networks, or many accounts from one.
    async limitsOf(browser: Browser, given: string): Promise<Limits> {
      const email = given.toLowerCase()
      const name = await findKnown(browser, email)
      if (name !== undefined) return [{ name: `known ${name}`, most: 10, past: 'delay' }]
      return [
        { name: `sign-in ${email} ${ipPrefix(browser.address, 64)}`, most: 5, past: 'delay' },
        { name: `sign-in ${email}`, most: 10, past: 'delay' },
        ...perNetwork('sign-in', browser.address, 50),
      ]
    },

    /** Adds the cookie by which the browser is known from now on, if somebody is signed in with these cookies. */
    async markKnown<T>(browser: Browser, signed: WithCookies<T>): Promise<WithCookies<T>> {
      const cookie = signed.cookies.map((one) => one.split(';', 1)[0]).join('; ')
      const session = await (await auth()).readSession({ ...browser, cookie })
      const account = session && (await accountOf(session.result.userId))
      if (!account || known.find(browser.cookie, account)) return signed
      return { ...signed, cookies: [...signed.cookies, known.cookieFor(browser.cookie, account)] }
    },
  }
}

/** A /48 may be one subscriber or one site, so it is allowed four times as much as a /64. */
export function perNetwork(what: string, address: string, most: number): Limits {
  const [near, wide] = [ipPrefix(address, 64), ipPrefix(address, 48)]
  const own = { name: `${what} ${near}`, most, past: 'refuse' } as const
  return near === wide ? [own] : [own, { name: `${what} ${wide}`, most: most * 4, past: 'refuse' }]
}

/** What a signed-in user does with the own password: whoever has the session might guess it. */
export const perAccount = (userId: string): Limits => [
  { name: `account ${userId}`, most: 10, past: 'refuse' },
]

export const perMail = (email: string, address: string): Limits => [
  { name: `mail ${email.toLowerCase()}`, most: 3, past: 'refuse' },
  ...perNetwork('mail', address, 20),
]
