// Sessions of browsers. The cookie holds a random token, and the database an HMAC of it. The HMAC's key is
// not in the database, so write access to the database is not enough to create a session.
import { DAY_MS, MINUTE_MS } from '../../lib/time.ts'
import { SESSION_MS_MAX, sessionEnd } from '../domain/actors.ts'
import type { Services } from '../domain/context.ts'
import { decrypt, deriveEncryptionKey, deriveKeyedHash, encrypt } from '../domain/encryption.ts'
import { extendSession, findSession, insertSession } from '../store/accounts/sessions.ts'
import type { Tx } from '../store/engine/store.ts'
import { type Browser, createCookie, createToken, type WithCookies } from './cookies.ts'

export interface SessionIds {
  userId: string
  sessionId: string
}

/** Sessions expire this long after their last use. */
const IDLE_TIMEOUT_MS = DAY_MS
/** Minimum interval between updates of a session in use. */
const TOUCH_INTERVAL_MS = 5 * MINUTE_MS

/** A longer ID token does not fit into the URL that ends the session at the provider. */
const ID_TOKEN_CHARS_MAX = 6_000

/** `secret` is ADIT_SECRET. */
export function createSessions(services: Services, secret: string, https: boolean) {
  const hash = deriveKeyedHash('sessions', secret)
  const idTokenKey = deriveEncryptionKey('id tokens', secret)
  const cookie = createCookie('session_token', { https, maxAgeS: IDLE_TIMEOUT_MS / 1000 })

  return {
    clear: cookie.clear,

    /**
     * Returns the cookie. The caller has locked the user, who is not disabled. With the ID token of a single
     * sign-on, signing out also ends the session at the provider.
     */
    async start(db: Tx, browser: Browser, userId: string, idToken?: string): Promise<string> {
      const token = createToken(services.random)
      const now = services.clock()
      await insertSession(db, {
        id: services.ids('ses'),
        user_id: userId,
        token: hash(token),
        ip_address: browser.address,
        user_agent: browser.agent,
        created_at: now,
        expires_at: now + IDLE_TIMEOUT_MS,
        id_token:
          idToken !== undefined && idToken.length <= ID_TOKEN_CHARS_MAX
            ? encrypt(idTokenKey, idToken, services.random)
            : null,
      })
      return cookie.set(token)
    },

    decryptIdToken: (encrypted: string) => decrypt<string>(idTokenKey, encrypted),

    /** The session of the browser's cookie; undefined if the browser is not signed in. */
    async read(browser: Browser): Promise<WithCookies<SessionIds> | undefined> {
      const token = cookie.readToken(browser.cookie)
      const row = token && (await findSession(services.store.db, hash(token)))
      const now = services.clock()
      if (!row || sessionEnd(row) <= now) return undefined
      const result = { userId: row.user_id, sessionId: row.id }
      const expiresAt = Math.min(now + IDLE_TIMEOUT_MS, row.created_at + SESSION_MS_MAX)
      if (expiresAt < row.expires_at + TOUCH_INTERVAL_MS) return { result, cookies: [] }
      const extended = { id: row.id, expiresAt }
      const isOpen = await services.store.transaction((db) => extendSession(db, extended))
      return isOpen ? { result, cookies: [cookie.set(token)] } : undefined
    },
  }
}
