// A cookie by which a browser proves that somebody signed in with it before. It opens nothing: attempts to sign in with
// it are counted apart, so that strangers who guess a password cannot keep its owner out.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

const MAX_AGE_S = 365 * 24 * 60 * 60
/** Accounts that one browser is known for; the oldest goes first. */
const ACCOUNTS_MAX = 4

/** The hash of the password makes a new password end what browsers were known by. */
export interface Account {
  userId: string
  passwordHash: string
}

export type KnownBrowsers = ReturnType<typeof createKnownBrowsers>

export function createKnownBrowsers({ secret, https }: { secret: string; https: boolean }) {
  const key = createHmac('sha256', secret).update('adit known browser').digest()
  const name = `${https ? '__Host-' : ''}adit.known_browser`

  const macOf = (nonce: string, { userId, passwordHash }: Account) =>
    createHmac('sha256', key)
      .update(JSON.stringify([nonce, userId, passwordHash]))
      .digest()

  const marksIn = (cookie: string): string[] =>
    cookie
      .split(/; */)
      .filter((one) => one.startsWith(`${name}=`))
      .flatMap((one) => one.slice(name.length + 1).split('~'))
      .filter((mark) => /^[\w-]{22}\.[\w-]{43}$/.test(mark))
      .slice(0, ACCOUNTS_MAX)

  return {
    /** Whether there is anything to check. */
    hasMarks: (cookie: string): boolean => marksIn(cookie).length > 0,

    /** Names the browser, if it is known for the account. */
    find(cookie: string, account: Account): string | undefined {
      const isOf = (mark: string) => {
        const [nonce = '', mac = ''] = mark.split('.')
        return timingSafeEqual(Buffer.from(mac, 'base64url'), macOf(nonce, account))
      }
      return marksIn(cookie).find(isOf)?.split('.', 1)[0]
    },

    /** The cookie to set, with what the browser was known for before. */
    cookieFor(cookie: string, account: Account): string {
      const nonce = randomBytes(16).toString('base64url')
      const mark = `${nonce}.${macOf(nonce, account).toString('base64url')}`
      const marks = [mark, ...marksIn(cookie)].slice(0, ACCOUNTS_MAX)
      const secure = https ? '; Secure' : ''
      return `${name}=${marks.join('~')}; Max-Age=${MAX_AGE_S}; Path=/; HttpOnly${secure}; SameSite=Lax`
    },
  }
}
