// Single sign-on. The state of a pending sign-in is in an encrypted cookie, so that only the browser that
// started it can complete it, and abandoned sign-ins need no storage.
import { hkdfSync } from 'node:crypto'
import { EncryptJWT, jwtDecrypt } from 'jose'
import { hashSecret } from '../../lib/credentials/secret.ts'
import {
  admitIdentity,
  recordRejection,
  type SsoRejection,
  type VerifiedIdentity,
} from '../domain/accounts/identities.ts'
import { Fault } from '../domain/fault.ts'
import { useSsoState } from '../store/accounts/sessions.ts'
import type { Auth, WithCookies } from './better-auth.ts'
import { type Browser, cookiesNamed } from './browser.ts'
import { OidcError } from './id-token.ts'
import { type Challenge, createOidcClient } from './oidc.ts'
import type { AuthSettings } from './options.ts'

interface SsoSettings {
  issuer: string
  clientId: string
  clientSecret: string
  /** Whether to link an existing account to a subject with the same verified address. */
  linkByEmail: boolean
}

/** Why a single sign-on did not succeed. */
type SsoFailure = SsoRejection | 'canceled' | 'failed'

export type Sso = ReturnType<typeof createSso>

const TIMEOUT_S = 10 * 60
const RANDOM_BYTES = 32

export function createSso(settings: AuthSettings, auth: Auth, sso: SsoSettings) {
  const { services, baseUrl } = settings
  const client = createOidcClient({
    ...sso,
    redirectUri: `${baseUrl}/dashboard/api/sign-in/sso/return`,
    clock: services.clock,
  })
  const cookie = challengeCookie(settings)
  const random = () => Buffer.from(services.random(RANDOM_BYTES)).toString('base64url')
  const warn = (reason: string) => settings.onProblem('warn', `single sign-on failed: ${reason}`)

  const reject = (reason: string): undefined => void warn(reason)

  /** The sign-in that the redirect completes, once at all nodes together; undefined if there is none. */
  async function consumeChallenge(
    browser: Browser,
    { state, code }: Record<string, string>,
  ): Promise<Challenge | undefined> {
    const challenge = await cookie.read(browser)
    if (!challenge || state !== challenge.state)
      return reject('started in another browser, or more than 10 minutes ago')
    if (!code) return reject('the redirect has no code')
    const at = services.clock()
    // Longer than the cookie is valid, because the clocks of nodes differ.
    const used = { hash: hashSecret(challenge.state), at, expiresAt: at + 2 * TIMEOUT_S * 1000 }
    const isFirst = await services.store.transaction((db) => useSsoState(db, used))
    return isFirst ? challenge : reject('the state was used before')
  }

  /** Undefined if the provider's response cannot be verified. */
  const identify = (
    { code = '', iss }: Record<string, string>,
    challenge: Challenge,
  ): Promise<VerifiedIdentity | undefined> =>
    client.identify({ code, iss }, challenge).catch((error) => reject(describe(error)))

  /** The account, its session and the audit entry are one transaction. */
  async function signIn(
    browser: Browser,
    identity: VerifiedIdentity,
  ): Promise<WithCookies<SsoRejection | undefined>> {
    const { address } = browser
    return services.store.transaction(async (db) => {
      const { user, rejection } = await admitIdentity(db, services, identity, { ...sso, address })
      if (rejection === undefined)
        return { result: undefined, cookies: await auth.startSession(db, browser, user.id) }
      warn(rejection)
      await recordRejection(db, services, { user, rejection, address })
      return { result: rejection, cookies: [] }
    })
  }

  return {
    /** Returns the URL to redirect the browser to. */
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

    /** Handles the redirect back from the provider. */
    async finish(
      browser: Browser,
      query: Record<string, string>,
    ): Promise<WithCookies<{ failure: SsoFailure | undefined }>> {
      const failed = (failure: SsoFailure) => ({ result: { failure }, cookies: [cookie.clear] })
      if (query.error === 'access_denied') return failed('canceled')
      if (query.error !== undefined) {
        warn(`the provider returned the error ${query.error.slice(0, 100)}`)
        return failed('failed')
      }
      const challenge = await consumeChallenge(browser, query)
      const identity = challenge && (await identify(query, challenge))
      if (!identity) return failed('failed')
      const { result: failure, cookies } = await signIn(browser, identity)
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
      const encrypted = await new EncryptJWT({ state, nonce, codeVerifier })
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
        .setExpirationTime(new Date(services.clock() + TIMEOUT_S * 1000))
        .encrypt(key)
      return set(encrypted, TIMEOUT_S)
    },
    async read(browser: Browser): Promise<Challenge | undefined> {
      const [, encrypted = ''] = cookiesNamed(browser.cookie, new RegExp(`^${name}$`)).split('=')
      const options = { keyManagementAlgorithms: ['dir'], requiredClaims: ['exp'], currentDate: now() }
      const decrypted = await jwtDecrypt<Challenge>(encrypted, key, options).catch(() => undefined)
      return decrypted?.payload
    },
  }
}
