// A cookie that proves that a browser has signed in to an account before. It grants no access. Attempts of
// this browser to sign in are counted separately, so that others who guess the password cannot lock out the
// owner of the account.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { createCookie } from '../../auth/cookies.ts'

const MAX_AGE_S = 365 * 24 * 60 * 60
/** Accounts per browser; the oldest is removed first. */
const ACCOUNTS_MAX = 4

/** The password hash is part of the MAC, so that a new password invalidates the cookies. */
export interface Account {
  userId: string
  passwordHash: string
}

export type KnownBrowsers = ReturnType<typeof createKnownBrowsers>

export function createKnownBrowsers({ secret, https }: { secret: string; https: boolean }) {
  const key = createHmac('sha256', secret).update('adit known browser').digest()
  const { set, read } = createCookie('known_browser', { https, maxAgeS: MAX_AGE_S })

  const computeMac = (nonce: string, { userId, passwordHash }: Account) =>
    createHmac('sha256', key)
      .update(JSON.stringify([nonce, userId, passwordHash]))
      .digest()

  const readEntries = (cookie: string): string[] =>
    (read(cookie) ?? '')
      .split('~')
      .filter((entry) => /^[\w-]{22}\.[\w-]{43}$/.test(entry))
      .slice(0, ACCOUNTS_MAX)

  return {
    hasEntries: (cookie: string): boolean => readEntries(cookie).length > 0,

    /** The id of the browser, if it is known for the account. */
    find(cookie: string, account: Account): string | undefined {
      const matches = (entry: string) => {
        const [nonce = '', mac = ''] = entry.split('.')
        return timingSafeEqual(Buffer.from(mac, 'base64url'), computeMac(nonce, account))
      }
      return readEntries(cookie).find(matches)?.split('.', 1)[0]
    },

    /** The cookie to set: an entry for the account, and those that the browser has. */
    cookieFor(cookie: string, account: Account): string {
      const nonce = randomBytes(16).toString('base64url')
      const entry = `${nonce}.${computeMac(nonce, account).toString('base64url')}`
      return set([entry, ...readEntries(cookie)].slice(0, ACCOUNTS_MAX).join('~'))
    },
  }
}
