// The limits of sign-in attempts: per account, network and known browser.

import { ipPrefix } from '../../../lib/net/ip-address.ts'
import type { Browser } from '../../auth/cookies.ts'
import type { SignedIn } from '../../auth/sign-in.ts'
import { findCredentials, findPasswordHash } from '../../domain/accounts/users.ts'
import type { Services } from '../../domain/context.ts'
import type { AttemptLimits } from './attempt-counts.ts'
import type { Account, KnownBrowsers } from './known-browser.ts'

const NO_ACCOUNT: Account = { userId: '', passwordHash: '' }

export type SignInLimits = ReturnType<typeof createSignInLimits>

export function createSignInLimits(services: Services, known: KnownBrowsers) {
  async function findAccount(userId: string): Promise<Account | undefined> {
    const passwordHash = await findPasswordHash(services, userId)
    return passwordHash === undefined ? undefined : { userId, passwordHash }
  }

  /** The id of the browser, if it has signed in to the account before. */
  async function findKnown({ cookie }: Browser, email: string): Promise<string | undefined> {
    if (!known.hasEntries(cookie)) return undefined
    const account = await findCredentials(services, email)
    // The same work for an unknown address, so that the response time does not reveal accounts.
    const found = known.find(cookie, account ?? NO_ACCOUNT)
    return account && found
  }

  return {
    // A known browser has a counter of its own. Other browsers are counted by account and by network:
    // attackers guess the password of one account from many networks, or of many accounts from one network.
    async limitsFor(browser: Browser, address: string): Promise<AttemptLimits> {
      const email = address.toLowerCase()
      const name = await findKnown(browser, email)
      if (name !== undefined) return [{ kind: 'known-browser', name, max: 10, onExceed: 'delay' }]
      return [
        {
          kind: 'sign-in-account-from-network',
          name: `${email} ${ipPrefix(browser.address, 64)}`,
          max: 5,
          onExceed: 'delay',
        },
        { kind: 'sign-in-account', name: email, max: 10, onExceed: 'delay' },
        ...perNetwork('sign-in', browser.address, 50),
      ]
    },

    /** Adds the cookie that makes this a known browser, if the user is signed in. */
    async markKnown(browser: Browser, signedIn: SignedIn): Promise<SignedIn> {
      const account = signedIn.userId === undefined ? undefined : await findAccount(signedIn.userId)
      if (!account || known.find(browser.cookie, account)) return signedIn
      return { ...signedIn, cookies: [...signedIn.cookies, known.cookieFor(browser.cookie, account)] }
    },
  }
}

/**
 * Limits by network. A /48 may be one subscriber or one site, so it is allowed four times as much as a /64. A
 * /32 is usually a provider: it is allowed 64 times as much.
 */
export function perNetwork(
  action: 'sign-in' | 'code' | 'sso' | 'sso-return' | 'mail' | 'device' | 'user-code' | 'client' | 'agent',
  address: string,
  max: number,
): AttemptLimits {
  const kind = `${action}-network` as const
  const limit = (name: string, factor: number) =>
    ({ kind, name, max: max * factor, onExceed: 'reject' }) as const
  const narrowest = limit(ipPrefix(address, 64), 1)
  // An IPv4 address has no prefix.
  if (narrowest.name === address) return [narrowest]
  return [narrowest, limit(ipPrefix(address, 48), 4), limit(ipPrefix(address, 32), 64)]
}

/** Each successful sign-in is an audit entry in every workspace of the user. */
export const perSignedIn = (email: string): AttemptLimits => [
  { kind: 'signed-in-account', name: email.toLowerCase(), max: 100, onExceed: 'reject' },
]

/** For operations that ask for the password again: a stolen session must not be enough to guess it. */
export const perAccount = (userId: string): AttemptLimits => [
  { kind: 'own-account', name: userId, max: 10, onExceed: 'reject' },
]

/** For codes of terminals that wait for an approval. */
export const perUserCode = (userId: string, address: string): AttemptLimits => [
  { kind: 'user-code-account', name: userId, max: 10, onExceed: 'reject' },
  ...perNetwork('user-code', address, 30),
]

export const perMail = (email: string, address: string): AttemptLimits => [
  { kind: 'mail-account', name: email.toLowerCase(), max: 3, onExceed: 'reject' },
  ...perNetwork('mail', address, 20),
]
