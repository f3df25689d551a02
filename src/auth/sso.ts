// Signing in at an identity provider. What a sign-in needs to be finished travels in an encrypted cookie, so that only the
// browser that began it can finish it, and nothing is stored for those who never come back.
import { hkdfSync } from 'node:crypto'
import { EncryptJWT, jwtDecrypt } from 'jose'
import { Fault } from '../domain/fault.ts'
import { admitIdentity, recordRefusal, type SsoRefusal, type VerifiedIdentity } from '../domain/identities.ts'
import type { Auth, WithCookies } from './auth.ts'
import { type Browser, cookiesNamed } from './browser.ts'
import { OidcError } from './id-token.ts'
import { type Challenge, createOidcClient } from './oidc.ts'
import type { AuthSettings } from './options.ts'
import { createUsedStates } from './used-states.ts'

export interface SsoSettings {
  issuer: string
  clientId: string
  clientSecret: string
  /** Whether an existing account is linked to a subject that proves its address at the provider. */
  linkByEmail: boolean
}

/** Why somebody comes back without being signed in. */
export type SsoFailure = SsoRefusal | 'cancelled' | 'failed'

export type Sso = ReturnType<typeof createSso>

const COMPLETE_WITHIN_S = 10 * 60
const RANDOM_BYTES = 32

export function createSso(settings: AuthSettings, auth: Auth, sso: SsoSettings) {
  const { services, baseUrl } = settings
  const client = createOidcClient({
    ...sso,
    redirectUri: `${baseUrl}/dashboard/api/sign-in/sso/return`,
    clock: services.clock,
  })
  const cookie = challengeCookie(settings)
  const usedStates = createUsedStates(COMPLETE_WITHIN_S * 1000, services.clock)
  const random = () => Buffer.from(services.random(RANDOM_BYTES)).toString('base64url')
  const warn = (reason: string) => settings.onTrouble('warn', `single sign-on failed: ${reason}`)

  /** Undefined where the answer of the provider does not prove who somebody is. */
  async function identify(
    browser: Browser,
    query: Record<string, string>,
  ): Promise<VerifiedIdentity | undefined> {
    try {
      const challenge = await cookie.read(browser)
      if (!challenge || query.state !== challenge.state)
        throw new OidcError('this browser did not begin it, or more than 10 minutes ago')
      if (!query.code) throw new OidcError('the browser came back without a code')
      if (!usedStates.use(challenge.state)) throw new OidcError('it was completed before')
      return await client.identify({ code: query.code, iss: query.iss }, challenge)
    } catch (error) {
      warn(describe(error))
      return undefined
    }
  }

  /** The account, its session and the audit entry are one transaction. */
  async function enter(
    browser: Browser,
    identity: VerifiedIdentity,
  ): Promise<WithCookies<SsoRefusal | undefined>> {
    const { address } = browser
    return services.store.transaction(async (db) => {
      const { user, refusal } = await admitIdentity(db, services, identity, { ...sso, address })
      if (refusal === undefined)
        return { result: undefined, cookies: await auth.startSession(db, browser, user.id) }
      warn(refusal)
      await recordRefusal(db, services, { user, refusal, address })
      return { result: refusal, cookies: [] }
    })
  }

  return {
    /** Where to send the browser. */
    async begin(): Promise<WithCookies<{ url: string }>> {
      const challenge = { state: random(), nonce: random(), codeVerifier: random() }
      const url = await client.authorizationUrl(challenge).catch((cause) => {
        warn(describe(cause))
        throw new Fault('unavailable', {
          message: 'The identity provider cannot be reached. Try again shortly, or sign in with a password.',
          retryAfterS: 5,
          cause,
        })
      })
      return { result: { url }, cookies: [await cookie.write(challenge)] }
    },

    /** The browser is back. */
    async finish(
      browser: Browser,
      query: Record<string, string>,
    ): Promise<WithCookies<{ failure: SsoFailure | undefined }>> {
      const failed = (failure: SsoFailure) => ({ result: { failure }, cookies: [cookie.clear] })
      if (query.error === 'access_denied') return failed('cancelled')
      if (query.error !== undefined) {
        warn(`the provider answered ${query.error.slice(0, 100)}`)
        return failed('failed')
      }
      const identity = await identify(browser, query)
      if (!identity) return failed('failed')
      const { result: failure, cookies } = await enter(browser, identity)
      return { result: { failure }, cookies: [cookie.clear, ...cookies] }
    },
  }
}

const describe = (error: unknown) =>
  error instanceof OidcError ? error.message : `the provider cannot be reached: ${(error as Error).message}`

function challengeCookie({ services, secret, baseUrl }: AuthSettings) {
  const key = new Uint8Array(hkdfSync('sha256', secret, '', 'adit sso challenge', 32))
  const isHttps = baseUrl.startsWith('https:')
  const name = `${isHttps ? '__Host-' : ''}adit.sso`
  const set = (value: string, maxAgeS: number) =>
    `${name}=${value}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${isHttps ? '; Secure' : ''}`
  const now = () => new Date(services.clock())
  return {
    clear: set('', 0),
    async write({ state, nonce, codeVerifier }: Challenge): Promise<string> {
      const sealed = await new EncryptJWT({ state, nonce, codeVerifier })
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .setExpirationTime(new Date(services.clock() + COMPLETE_WITHIN_S * 1000))
        .encrypt(key)
      return set(sealed, COMPLETE_WITHIN_S)
    },
    async read(browser: Browser): Promise<Challenge | undefined> {
      const [, sealed = ''] = cookiesNamed(browser.cookie, new RegExp(`^${name}$`)).split('=')
      const options = { keyManagementAlgorithms: ['dir'], requiredClaims: ['exp'], currentDate: now() }
      const opened = await jwtDecrypt<Challenge>(sealed, key, options).catch(() => undefined)
      return opened?.payload
    },
  }
}
