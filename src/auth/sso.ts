// Signing in at another identity provider, by OpenID Connect. A provider that does not answer must hold up nobody else, so
// this is a second better-auth beside the first, made when it is needed and made again when that failed.
import { APIError } from 'better-auth/api'
import { betterAuth } from 'better-auth/minimal'
import { type GenericOAuthConfig, genericOAuth } from 'better-auth/plugins/generic-oauth'
import { cleanText } from '../contract/text.ts'
import type { World } from '../domain/context.ts'
import { Fault } from '../domain/fault.ts'
import { isInvited, joinAsInvited } from '../domain/links.ts'
import type { WithCookies } from './auth.ts'
import { type Browser, headersOf } from './browser.ts'
import { type AuthSettings, authOptions } from './options.ts'

export interface SsoSettings {
  issuer: string
  clientId: string
  clientSecret: string
}

/** Why somebody comes back without being signed in. */
export type SsoFailure = 'not_invited' | 'cancelled' | 'failed'

const PROVIDER = 'sso'
const ANSWER_WITHIN_MS = 5_000

export type Sso = ReturnType<typeof createSso>

export function createSso(settings: AuthSettings, { issuer, clientId, clientSecret }: SsoSettings) {
  const { world, baseUrl } = settings
  const discoveryUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
  const config: GenericOAuthConfig = {
    providerId: PROVIDER,
    discoveryUrl,
    clientId,
    clientSecret,
    scopes: ['openid', 'email', 'profile'],
    requireIdTokenVerification: true,
    redirectURI: `${baseUrl}/dashboard/api/sign-in/sso/return`,
  }

  async function make() {
    const options = authOptions(settings)
    const auth = betterAuth({
      ...options,
      databaseHooks: { ...options.databaseHooks, user: { create: invitedOnly(world) } },
      plugins: [...options.plugins, genericOAuth({ config: [config] })],
    })
    const context = await auth.$context
    if (!context.socialProviders.some(({ id }) => id === PROVIDER))
      throw new Error(`${discoveryUrl} describes no identity provider that can be used`)
    return auth
  }

  let made: ReturnType<typeof make> | undefined
  async function provider(): ReturnType<typeof make> {
    made ??= make()
    const late = new Promise<never>((_, reject) =>
      setTimeout(() => reject(new Error(`${discoveryUrl} does not answer`)), ANSWER_WITHIN_MS).unref(),
    )
    try {
      return await Promise.race([made, late])
    } catch (cause) {
      made = undefined
      throw new Fault('unavailable', {
        message: 'The identity provider cannot be reached. Try again shortly, or sign in with a password.',
        retryAfterS: 5,
        cause,
      })
    }
  }

  /** The provider vouches for the address: whatever was sent to it is accepted by signing in. */
  async function acceptInvitations(cookies: string[]): Promise<void> {
    const auth = await provider()
    const cookie = cookies.map((one) => one.split(';', 1)[0]).join('; ')
    const signed = await auth.api.getSession({ headers: new Headers({ cookie }) })
    if (signed) await joinAsInvited(world, signed.session.userId)
  }

  return {
    /** Where to send the browser. */
    async begin(browser: Browser): Promise<WithCookies<{ url: string }>> {
      const auth = await provider()
      const body = { provider: PROVIDER, callbackURL: '/', errorCallbackURL: '/', disableRedirect: true }
      const response = await auth.api.signInSocial({ body, headers: headersOf(browser), asResponse: true })
      if (!response.ok) throw new Error(`better-auth could not begin: ${await response.text()}`)
      const { url } = (await response.json()) as { url: string }
      return { result: { url }, cookies: response.headers.getSetCookie() }
    },

    /** The browser is back. */
    async finish(
      browser: Browser,
      query: Record<string, string>,
    ): Promise<WithCookies<{ failure: SsoFailure | undefined }>> {
      if (query.error !== undefined) return { result: { failure: 'cancelled' }, cookies: [] }
      const auth = await provider()
      const response = await auth.api.callbackOAuth({
        method: 'GET',
        params: { id: PROVIDER },
        query,
        headers: headersOf(browser),
        asResponse: true,
      })
      const cookies = response.headers.getSetCookie()
      const { searchParams } = new URL(response.headers.get('location') ?? '/', baseUrl)
      const error = searchParams.get('error')
      if (response.status < 400 && error === null) {
        await acceptInvitations(cookies)
        return { result: { failure: undefined }, cookies }
      }
      const failure = /not_linked|signup|not_invited|create_user/.test(error ?? '') ? 'not_invited' : 'failed'
      settings.onTrouble('warn', `signing in at the identity provider failed: ${error ?? response.status}`)
      return { result: { failure }, cookies }
    },
  }
}

/** Whoever is not known yet must have been invited, at an address that the provider vouches for. */
const invitedOnly = (world: World) => ({
  before: async (user: { email: string; emailVerified: boolean; name: string }) => {
    if (!user.emailVerified || !(await isInvited(world, user.email)))
      throw new APIError('FORBIDDEN', { code: 'not_invited', message: 'not_invited' })
    return { data: { ...user, name: plainName(user.name, user.email) } }
  },
})

/** The provider's name of a person, made one that is accepted here. */
const plainName = (name: string, email: string) => cleanText(name, 80) || (email.split('@', 1)[0] as string)
