// Single sign-on. The state of a pending sign-in is in an encrypted cookie, so that only the browser that
// started it can complete it, and abandoned sign-ins need no storage.
import { hashSecret } from '../../lib/credentials/secret.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import { admitIdentity, recordRejection, type SsoRejection } from '../domain/accounts/identities.ts'
import { readInvitation } from '../domain/accounts/links.ts'
import { decrypt, deriveEncryptionKey, encrypt } from '../domain/encryption.ts'
import { Fault } from '../domain/fault.ts'
import { consumeSsoState } from '../store/accounts/challenges.ts'
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

/** A sign-in in progress, as the cookie has it. */
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
  const cookie = pendingCookie(settings)
  const token = () => createToken(services.random)
  const warn = (reason: string) => settings.onProblem('warn', `single sign-on failed: ${reason}`)

  /** False if the sign-in was consumed before, at any node. */
  function consume({ state }: PendingSignIn): Promise<boolean> {
    // Longer than the cookie is valid, because the clocks of nodes differ.
    const used = { hash: hashSecret(state), expiresAt: services.clock() + 2 * TIMEOUT_MS }
    return services.store.transaction((db) => consumeSsoState(db, used))
  }

  /** Undefined if the redirect does not complete the sign-in; the reason is logged. */
  async function identify(
    pending: PendingSignIn,
    { code, iss, error }: Record<string, string>,
  ): Promise<ProviderSignIn | undefined> {
    if (error !== undefined) return void warn(`the provider returned the error ${error.slice(0, 100)}`)
    if (!code) return void warn('the redirect has no code')
    if (!(await consume(pending))) return void warn('the state was used before')
    return client.identify({ code, iss }, pending).catch((reason) => void warn(describe(reason)))
  }

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
     * Returns the URL to redirect the browser to. `link` is the secret of an invitation. Only the browser
     * that began this sign-in can accept it.
     */
    async begin(link?: string): Promise<WithCookies<{ url: string }>> {
      const opened = link === undefined ? undefined : await readInvitation(services, link)
      const [state, nonce, codeVerifier] = [token(), token(), token()]
      const pending = { state, nonce, codeVerifier, invitation: opened?.invitation }
      const url = await client.authorizationUrl(pending, opened?.email ?? null).catch((cause) => {
        warn(describe(cause))
        throw new Fault('unavailable', {
          message: 'The identity provider cannot be reached. Try again shortly, or sign in with a password.',
          retryAfterS: 5,
          cause,
        })
      })
      return { result: { url }, cookies: [cookie.write(pending)] }
    },

    /** Handles the redirect back from the provider. */
    async finish(browser: Browser, query: Record<string, string>): Promise<WithCookies<SsoResult>> {
      const pending = cookie.read(browser)
      // Checked first, because redirects with an error have the state, too (RFC 6749, section 4.1.2.1). A
      // request without it may be caused by another site, and must not end the sign-in.
      if (!pending || query.state !== pending.state) {
        warn('started in another browser, or more than 10 minutes ago')
        return { result: { failure: 'failed' }, cookies: [] }
      }
      const failed = (failure: SsoFailure) => ({ result: { failure }, cookies: [cookie.clear] })
      if (query.error === 'access_denied') return failed('canceled')
      const providerSignIn = await identify(pending, query)
      if (!providerSignIn) return failed('failed')
      const { invitation } = pending
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

function pendingCookie({ services, secret, https }: AuthSettings) {
  const key = deriveEncryptionKey('sso challenge', secret)
  const cookie = createCookie('sso', { https, maxAgeS: TIMEOUT_MS / 1000 })
  return {
    clear: cookie.clear,
    write: (pending: PendingSignIn): string =>
      cookie.set(encrypt(key, { ...pending, expiresAt: services.clock() + TIMEOUT_MS }, services.random)),
    /** Undefined also if the cookie was changed or has expired. */
    read({ cookie: header }: Browser): PendingSignIn | undefined {
      try {
        const pending = decrypt<PendingSignIn & { expiresAt: number }>(key, cookie.read(header) ?? '')
        return pending.expiresAt > services.clock() ? pending : undefined
      } catch {
        return undefined
      }
    },
  }
}
