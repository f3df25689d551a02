// OpenID Connect client: discovery, authorization code flow with PKCE, and the identity from ID token and
// userinfo. Responses are limited in size and time, and redirects are not followed.
import { createHash } from 'node:crypto'
import * as openid from 'openid-client'
import { isEmail } from '../../contract/fields.ts'
import type { VerifiedIdentity } from '../domain/accounts/identities.ts'

interface Client {
  issuer: string
  clientId: string
  clientSecret: string
}

interface OidcSettings extends Client {
  redirectUri: string
  clock: () => number
}

/** The secrets of one sign-in, known only to the browser that started it. */
export interface Challenge {
  state: string
  nonce: string
  codeVerifier: string
}

/** The provider's response was rejected. The message is for the operator's log and contains no secrets. */
export class OidcError extends Error {
  override name = 'OidcError'
}

type Claims = NonNullable<ReturnType<openid.TokenEndpointResponseHelpers['claims']>>

const SCOPES = 'openid email profile'
const TIMEOUT_S = 5
const RESPONSE_BYTES_MAX = 512 * 1024
/** Cache lifetime of the discovery document. */
const DISCOVERY_MS = 60 * 60 * 1000
/** OpenID Connect Core 1.0, 2: at most 255 ASCII characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/
/** Tolerated clock skew between the provider and this server. */
const CLOCK_TOLERANCE_S = 60
/** Maximum age of an ID token, which is used right after it is issued. */
const TOKEN_AGE_MAX_S = 10 * 60

export function createOidcClient(settings: OidcSettings) {
  const { issuer, redirectUri, clock } = settings

  let cached: { provider: Promise<openid.Configuration>; expiresAt: number } | undefined
  function getProvider(): Promise<openid.Configuration> {
    if (cached && clock() < cached.expiresAt) return cached.provider
    const provider = discover(settings)
    cached = { provider, expiresAt: clock() + DISCOVERY_MS }
    provider.catch(() => {
      if (cached?.provider === provider) cached = undefined
    })
    return provider
  }

  return {
    async authorizationUrl({ state, nonce, codeVerifier }: Challenge): Promise<string> {
      const parameters = {
        redirect_uri: redirectUri,
        scope: SCOPES,
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
      }
      return openid.buildAuthorizationUrl(await getProvider(), parameters).href
    },

    /** `returned` are the parameters of the redirect. */
    async identify(
      returned: { code: string; iss?: string | undefined },
      { state, nonce, codeVerifier }: Challenge,
    ): Promise<VerifiedIdentity> {
      const provider = await getProvider()
      const url = new URL(redirectUri)
      const { code, iss } = returned
      url.search = new URLSearchParams({ code, state, ...(iss !== undefined && { iss }) }).toString()
      const checks = { pkceCodeVerifier: codeVerifier, expectedState: state, expectedNonce: nonce }
      const tokens = await openid
        .authorizationCodeGrant(provider, url, { ...checks, idTokenExpected: true })
        .catch(rethrow)
      const claims = tokens.claims() as Claims
      requireOwn(claims, settings.clientId, clock())
      requireAccessTokenHash(tokens.id_token as string, claims, tokens.access_token)
      const profile = await findProfile(provider, claims, tokens.access_token)
      return { issuer, ...toIdentity(claims, profile) }
    },
  }
}

/** Reads the configuration of the provider. Its signing keys are loaded when the first one is needed. */
async function discover({ issuer, clientId, clientSecret }: Client): Promise<openid.Configuration> {
  const url = `${issuer}/.well-known/openid-configuration`
  const execute = [openid.enableNonRepudiationChecks]
  if (issuer.startsWith('http:')) execute.push(openid.allowInsecureRequests)
  const metadata = { [openid.clockTolerance]: CLOCK_TOLERANCE_S }
  const options = { timeout: TIMEOUT_S, execute, [openid.customFetch]: fetchBounded }
  const provider = await openid
    .discovery(new URL(url), clientId, metadata, authentication(clientSecret), options)
    .catch(rethrow)
  const server = provider.serverMetadata()
  // The library does not compare the issuer if it gets the URL of the document. A trailing slash is allowed.
  if (server.issuer.replace(/\/$/, '') !== issuer)
    throw new OidcError(`${url} names another issuer; set ADIT_OIDC_ISSUER to the one it names`)
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const)
    requireUrl(server[name], name, issuer)
  return provider
}

/** Throws if the discovery document or the signing keys cannot be read. */
export async function checkProvider(issuer: string): Promise<void> {
  const provider = await discover({ issuer, clientId: 'adit', clientSecret: 'unused' })
  const url = provider.serverMetadata().jwks_uri as string
  const response = await fetchBounded(url, {
    signal: AbortSignal.timeout(TIMEOUT_S * 1000),
    redirect: 'manual',
  })
  const { keys } = (await response.json()) as { keys?: unknown }
  if (!Array.isArray(keys)) throw new OidcError(`${url} has no signing keys`)
}

/** Uses a method that the provider supports; the default is Basic. */
function authentication(clientSecret: string): openid.ClientAuth {
  const methods = {
    basic: openid.ClientSecretBasic(clientSecret),
    post: openid.ClientSecretPost(clientSecret),
  }
  return (server, client, body, headers) => {
    const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const method = supported.includes('client_secret_basic') ? 'basic' : 'post'
    methods[method](server, client, body, headers)
  }
}

/** `fetch` throws a `TypeError` if the provider cannot be reached. */
function rethrow(error: Error): never {
  if (error instanceof TypeError) throw error
  const { message, cause } = error
  if (cause instanceof OidcError) throw cause
  throw new OidcError(cause instanceof Error ? `${message}: ${cause.message}` : message)
}

function requireOwn({ azp, iat }: Claims, clientId: string, now: number): void {
  if (azp !== undefined && azp !== clientId)
    throw new OidcError('the azp claim of the ID token names another client')
  const ageS = now / 1000 - iat
  if (ageS > TOKEN_AGE_MAX_S + CLOCK_TOLERANCE_S || ageS < -CLOCK_TOLERANCE_S)
    throw new OidcError('the ID token was issued long ago, or in the future')
}

function requireAccessTokenHash(idToken: string, { at_hash }: Claims, accessToken: string): void {
  if (at_hash === undefined) return
  const { alg } = JSON.parse(Buffer.from(idToken.split('.', 1)[0] as string, 'base64url').toString())
  const bits = /\d{3}$/.exec(alg)?.[0] ?? '512'
  const digest = createHash(`sha${bits}`).update(accessToken).digest()
  if (at_hash !== digest.subarray(0, digest.length / 2).toString('base64url'))
    throw new OidcError('the at_hash of the ID token does not match the access token')
}

/**
 * The address and its verification come from the same source: the ID token if it has both, otherwise
 * userinfo.
 */
async function findProfile(
  provider: openid.Configuration,
  claims: Claims,
  accessToken: string,
): Promise<Record<string, unknown>> {
  const isComplete = claims.email !== undefined && claims.email_verified !== undefined
  if (isComplete || provider.serverMetadata().userinfo_endpoint === undefined) return claims
  return openid.fetchUserInfo(provider, accessToken, claims.sub).catch(rethrow)
}

function toIdentity({ sub }: Claims, profile: Record<string, unknown>): Omit<VerifiedIdentity, 'issuer'> {
  if (!SUBJECT.test(sub)) throw new OidcError('the ID token has no usable subject')
  const { email, email_verified, name } = profile
  // Validated before lowercasing: some non-ASCII characters lowercase to ASCII letters.
  const usable = typeof email === 'string' && isEmail(email) ? email.toLowerCase() : undefined
  return {
    subject: sub,
    email: usable,
    // Some providers send "false" as a string, which is truthy.
    emailVerified: usable !== undefined && email_verified === true,
    name: typeof name === 'string' ? name : '',
  }
}

/** With an https issuer, all endpoints must use https. */
function requireUrl(value: unknown, name: string, issuer: string): void {
  const url = typeof value === 'string' ? URL.parse(value) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && issuer.startsWith('http:'))
  if (!isSafe) throw new OidcError(`the discovery document has no usable ${name}`)
}

async function fetchBounded(url: string, init: object): Promise<Response> {
  const { body, ok, status, headers } = await fetch(url, init)
  if (!ok) {
    await body?.cancel()
    throw new OidcError(`${new URL(url).pathname} returned status ${status}`)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > RESPONSE_BYTES_MAX) throw new OidcError(`${new URL(url).pathname} returned too many bytes`)
    chunks.push(chunk)
  }
  return new Response(chunks.length > 0 ? Buffer.concat(chunks) : null, { status, headers })
}
