// Under which names attempts to sign in are counted, and how many are allowed.
import type { Auth, WithCookies } from '../../auth/auth.ts'
import type { Browser } from '../../auth/browser.ts'
import { credentialsOf, passwordOf } from '../../domain/accounts.ts'
import type { Services } from '../../domain/context.ts'
import { ipPrefix } from '../../net/ip-address.ts'
import type { Account, KnownBrowsers } from './known-browser.ts'
import type { Limits } from './login-throttle.ts'

const NOBODY: Account = { userId: '', passwordHash: '' }

export function createSignInLimits(services: Services, known: KnownBrowsers, auth: () => Promise<Auth>) {
  async function accountOf(userId: string): Promise<Account | undefined> {
    const passwordHash = await passwordOf(services, userId)
    return passwordHash === undefined ? undefined : { userId, passwordHash }
  }

  /** Names the browser where somebody signed in to that account with it before. */
  async function findKnown({ cookie }: Browser, email: string): Promise<string | undefined> {
    if (!known.hasMarks(cookie)) return undefined
    const account = await credentialsOf(services, email)
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
      if (name !== undefined) return [{ kind: 'known-browser', name, most: 10, past: 'delay' }]
      return [
        {
          kind: 'sign-in-account-from-network',
          name: `${email} ${ipPrefix(browser.address, 64)}`,
          most: 5,
          past: 'delay',
        },
        { kind: 'sign-in-account', name: email, most: 10, past: 'delay' },
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

/**
 * A /48 may be one subscriber or one site, so it is allowed four times as much as a /64. A /32 is a provider, or somebody who
 * got as much from a registry: it is allowed 64 times as much.
 */
export function perNetwork(
  what: 'sign-in' | 'code' | 'sso' | 'sso-return' | 'mail',
  address: string,
  most: number,
): Limits {
  const kind = `${what}-network` as const
  const limit = (name: string, factor: number) =>
    ({ kind, name, most: most * factor, past: 'refuse' }) as const
  const own = limit(ipPrefix(address, 64), 1)
  if (own.name === address) return [own]
  return [own, limit(ipPrefix(address, 48), 4), limit(ipPrefix(address, 32), 64)]
}

/** What a signed-in user does with the own password: whoever has the session might guess it. */
export const perAccount = (userId: string): Limits => [
  { kind: 'own-account', name: userId, most: 10, past: 'refuse' },
]

export const perMail = (email: string, address: string): Limits => [
  { kind: 'mail-account', name: email.toLowerCase(), most: 3, past: 'refuse' },
  ...perNetwork('mail', address, 20),
]
