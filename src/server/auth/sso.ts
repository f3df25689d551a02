// Single sign-on. The state of a pending sign-in is in an encrypted cookie, so that only the browser that
// started it can complete it, and abandoned sign-ins need no storage.
import { hashSecret } from '../../lib/credentials/secret.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import { admitIdentity, recordRejection, type SsoRejection } from '../domain/accounts/identities.ts'
import { readInvitation } from '../domain/accounts/links.ts'
import { decrypt, deriveEncryptionKey, encrypt } from '../domain/encryption.ts'
import { Fault } from '../domain/fault.ts'
import { useSsoState } from '../store/accounts/challenges.ts'
import { type Browser, createCookie, createToken, type WithCookies } from './cookies.ts'
import { type Challenge, createOidcClient, OidcError, type ProviderSignIn } from './oidc.ts'
import type { Auth, AuthSettings } from './sign-in.ts'

export interface SsoSettings {
  issuer: string
  clientId: string
  clientSecret: string
  /** Whether to link an existing account to a subject with the same verified address. */
  linkByEmail: boolean
}

/** A sign-in in progress. */
interface PendingSignIn extends Challenge {
  invitation?: Invitation | undefined
}

/** The invitation that the sign-in accepts: the hash of its secret, and the workspace. */
interface Invitation {
  hash: string
  slug: string
}

/** `workspace` is the slug of the workspace that the user has joined by an invitation. */
interface SsoResult {
  failure?: SsoFailure
  workspace?: string | undefined
}

/** Why a single sign-on did not succeed. */
type SsoFailure = SsoRejection | 'canceled' | 'failed'

export type Sso = ReturnType<typeof createSso>

const TIMEOUT_MS = 10 * MINUTE_MS

/** `baseUrl` is the public URL of the server. */
export function createSso(settings: AuthSettings, auth: Auth, sso: SsoSettings, baseUrl: string) {
  const { services } = settings
  const client = createOidcClient({
    ...sso,
    redirectUri: `${baseUrl}/dashboard/api/sign-in/sso/return`,
    signedOutUri: `${baseUrl}/sign-in`,
    clock: services.clock,
  })
  const cookie = challengeCookie(settings)
  const token = () => createToken(services.random)
  const warn = (reason: string) => settings.onProblem('warn', `single sign-on failed: ${reason}`)

  const reject = (reason: string): undefined => void warn(reason)

  /** The sign-in that the redirect completes, once at all nodes together; undefined if there is none. */
  async function consumeChallenge(
    browser: Browser,
    { state, code }: Record<string, string>,
  ): Promise<PendingSignIn | undefined> {
    const challenge = cookie.read(browser)
    if (!challenge || state !== challenge.state)
      return reject('started in another browser, or more than 10 minutes ago')
    if (!code) return reject('the redirect has no code')
    // Longer than the cookie is valid, because the clocks of nodes differ.
    const used = { hash: hashSecret(challenge.state), expiresAt: services.clock() + 2 * TIMEOUT_MS }
    const isFirst = await services.store.transaction((db) => useSsoState(db, used))
    return isFirst ? challenge : reject('the state was used before')
  }

  /** Undefined if the provider's response cannot be verified. */
  const identify = (
    { code = '', iss }: Record<string, string>,
    challenge: Challenge,
  ): Promise<ProviderSignIn | undefined> =>
    client.identify({ code, iss }, challenge).catch((error) => reject(describe(error)))

  /** The account, its session and the audit entry are one transaction. */
  async function signIn(
    browser: Browser,
    { identity, idToken }: ProviderSignIn,
    invitation: Invitation | undefined,
  ): Promise<WithCookies<SsoRejection | undefined>> {
    const { address } = browser
    const policy = { ...sso, address, invitation: invitation?.hash }
    return services.store.transaction(async (db) => {
      const { user, rejection } = await admitIdentity(db, services, identity, policy)
      if (rejection === undefined)
        return { result: undefined, cookies: [await auth.startSession(db, browser, user.id, idToken)] }
      warn(rejection)
      await recordRejection(db, services, { user, rejection, address })
      return { result: rejection, cookies: [] }
    })
  }

  return {
    /**
     * Returns the URL to redirect the browser to. `link` is the secret of the invitation to accept, which
     * only the browser that has begun can do with this sign-in.
     */
    async begin(link?: string): Promise<WithCookies<{ url: string }>> {
      const opened = link === undefined ? undefined : await readInvitation(services, link)
      const [state, nonce, codeVerifier] = [token(), token(), token()]
      const challenge = { state, nonce, codeVerifier, invitation: opened?.invitation }
      const url = await client.authorizationUrl(challenge, opened?.email ?? null).catch((cause) => {
        warn(describe(cause))
        throw new Fault('unavailable', {
          message: 'The identity provider cannot be reached. Try again shortly, or sign in with a password.',
          retryAfterS: 5,
          cause,
        })
      })
      return { result: { url }, cookies: [cookie.write(challenge)] }
    },

    /** Handles the redirect back from the provider. */
    async finish(browser: Browser, query: Record<string, string>): Promise<WithCookies<SsoResult>> {
      const failed = (failure: SsoFailure) => ({ result: { failure }, cookies: [cookie.clear] })
      if (query.error === 'access_denied') return failed('canceled')
      if (query.error !== undefined) {
        warn(`the provider returned the error ${query.error.slice(0, 100)}`)
        return failed('failed')
      }
      const challenge = await consumeChallenge(browser, query)
      const providerSignIn = challenge && (await identify(query, challenge))
      if (!providerSignIn) return failed('failed')
      const { invitation } = challenge
      const { result: failure, cookies } = await signIn(browser, providerSignIn, invitation)
      if (failure) return failed(failure)
      return { result: { workspace: invitation?.slug }, cookies: [cookie.clear, ...cookies] }
    },

    /** The URL that ends the session at the provider; null if there is none. Contains the ID token. */
    signOutUrl: (idToken: string): Promise<string | null> =>
      client.signOutUrl(idToken).catch((error) => {
        settings.onProblem('warn', `cannot sign out at the identity provider: ${describe(error)}`)
        return null
      }),
  }
}

const describe = (error: unknown) =>
  error instanceof OidcError ? error.message : `the provider cannot be reached: ${(error as Error).message}`

function challengeCookie({ services, secret, https }: AuthSettings) {
  const key = deriveEncryptionKey('sso challenge', secret)
  const cookie = createCookie('sso', { https, maxAgeS: TIMEOUT_MS / 1000 })
  return {
    clear: cookie.clear,
    write: (challenge: PendingSignIn): string =>
      cookie.set(encrypt(key, { ...challenge, expiresAt: services.clock() + TIMEOUT_MS }, services.random)),
    /** Undefined also if it was changed or has expired. */
    read({ cookie: header }: Browser): PendingSignIn | undefined {
      try {
        const challenge = decrypt<PendingSignIn & { expiresAt: number }>(key, cookie.read(header) ?? '')
        return challenge.expiresAt > services.clock() ? challenge : undefined
      } catch {
        return undefined
      }
    },
  }
}
