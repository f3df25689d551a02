// OpenID Connect client: discovery, authorization code flow with PKCE, and the identity from ID token and
// userinfo. Responses are limited in size and time, and redirects are not followed.
import { createHash } from 'node:crypto'
import * as openid from 'openid-client'
import { isEmail } from '../../contract/fields.ts'
import { TEXT_CHARS_MAX } from '../../contract/limits.ts'
import { cleanText } from '../../contract/text.ts'
import type { VerifiedIdentity } from '../domain/accounts/identities.ts'

interface Client {
  issuer: string
  clientId: string
  clientSecret: string
}

interface OidcSettings extends Client {
  redirectUri: string
  /** Where the provider sends the browser after the sign-out. */
  signedOutUri: string
  clock: () => number
}

/** The result of a sign-in at the provider. The ID token is needed to sign out there. */
export interface ProviderSignIn {
  identity: VerifiedIdentity
  idToken: string
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
/** Minimum interval between refreshes of the signing keys that an unknown `kid` causes. */
const UNKNOWN_KID_INTERVAL_MS = 60 * 1000
/** The library refreshes signing keys that are at least this old when it meets an unknown `kid`. */
const REFRESHABLE_AGE_S = 60
const ERROR_CODE = /^[\w.:/-]{1,100}$/
/** Tolerated clock skew between the provider and this server. */
const CLOCK_TOLERANCE_S = 60
/** Maximum age of an ID token, which is used right after it is issued. */
const TOKEN_AGE_MAX_S = 10 * 60

export function createOidcClient(settings: OidcSettings) {
  const { issuer, redirectUri, signedOutUri, clock } = settings

  let cached: { metadata: Promise<openid.ServerMetadata>; expiresAt: number } | undefined
  function getMetadata(): Promise<openid.ServerMetadata> {
    if (cached && clock() < cached.expiresAt) return cached.metadata
    const metadata = discover(settings)
    cached = { metadata, expiresAt: clock() + DISCOVERY_MS }
    metadata.catch(() => {
      if (cached?.metadata === metadata) cached = undefined
    })
    return metadata
  }
  const getProvider = async () => configure(await getMetadata(), settings)

  let keys: ReturnType<typeof openid.getJwksCache>
  let keysRefreshedAt = Number.NEGATIVE_INFINITY
  /**
   * Runs `work` with the cached signing keys. To let the library refresh them for an unknown `kid`, they are
   * passed to it as older than they are.
   */
  async function withCachedKeys<T>(provider: openid.Configuration, work: () => Promise<T>): Promise<T> {
    const before = keys
    const ageS = clock() - keysRefreshedAt >= UNKNOWN_KID_INTERVAL_MS ? REFRESHABLE_AGE_S : 0
    if (before) openid.setJwksCache(provider, { ...before, uat: before.uat - ageS })
    try {
      return await work()
    } finally {
      const after = openid.getJwksCache(provider)
      if (after && after.uat !== (before?.uat ?? 0) - ageS) {
        keys = after
        if (before) keysRefreshedAt = clock()
      }
    }
  }

  return {
    /** `loginHint` is the email address that the user is expected to sign in with. */
    async authorizationUrl(
      { state, nonce, codeVerifier }: Challenge,
      loginHint: string | null,
    ): Promise<string> {
      const parameters = {
        redirect_uri: redirectUri,
        scope: SCOPES,
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: 'S256',
        ...(loginHint !== null && { login_hint: loginHint }),
      }
      return openid.buildAuthorizationUrl(await getProvider(), parameters).href
    },

    /** `returned` are the parameters of the redirect. */
    async identify(
      returned: { code: string; iss?: string | undefined },
      { state, nonce, codeVerifier }: Challenge,
    ): Promise<ProviderSignIn> {
      const provider = await getProvider()
      const url = new URL(redirectUri)
      const { code, iss } = returned
      url.search = new URLSearchParams({ code, state, ...(iss !== undefined && { iss }) }).toString()
      const checks = { pkceCodeVerifier: codeVerifier, expectedState: state, expectedNonce: nonce }
      const tokens = await withCachedKeys(provider, () =>
        openid.authorizationCodeGrant(provider, url, { ...checks, idTokenExpected: true }),
      ).catch(rethrow)
      const claims = tokens.claims() as Claims
      requireValidClaims(claims, settings.clientId, clock())
      requireAccessTokenHash(tokens.id_token as string, claims, tokens.access_token)
      const profile = await findProfile(provider, claims, tokens.access_token)
      return { identity: { issuer, ...toIdentity(claims, profile) }, idToken: tokens.id_token as string }
    },

    /** The URL that ends the session at the provider; null if the provider has none. */
    async signOutUrl(idToken: string): Promise<string | null> {
      const provider = await getProvider()
      const { end_session_endpoint } = provider.serverMetadata()
      if (end_session_endpoint === undefined) return null
      requireUrl(end_session_endpoint, 'end_session_endpoint', issuer)
      const parameters = { id_token_hint: idToken, post_logout_redirect_uri: signedOutUri }
      return openid.buildEndSessionUrl(provider, parameters).href
    },
  }
}

/** Reads the discovery document of the provider. */
async function discover({ issuer }: Pick<Client, 'issuer'>): Promise<openid.ServerMetadata> {
  const url = `${issuer}/.well-known/openid-configuration`
  const options = {
    timeout: TIMEOUT_S,
    execute: issuer.startsWith('http:') ? [openid.allowInsecureRequests] : [],
    [openid.customFetch]: fetchBounded,
  }
  const provider = await openid
    .discovery(new URL(url), 'unused', undefined, undefined, options)
    .catch(rethrow)
  const metadata = provider.serverMetadata()
  // The library does not compare the issuer if it gets the URL of the document. A trailing slash is allowed.
  if (metadata.issuer.replace(/\/$/, '') !== issuer) {
    const other = cleanText(metadata.issuer, TEXT_CHARS_MAX)
    throw new OidcError(`${url} names another issuer: ${other}. Set ADIT_OIDC_ISSUER to it if it is yours`)
  }
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const)
    requireUrl(metadata[name], name, issuer)
  return metadata
}

function configure(metadata: openid.ServerMetadata, client: Client): openid.Configuration {
  const tolerance = { [openid.clockTolerance]: CLOCK_TOLERANCE_S }
  const method = clientAuthentication(client.clientSecret)
  const provider = new openid.Configuration(metadata, client.clientId, tolerance, method)
  provider.timeout = TIMEOUT_S
  provider[openid.customFetch] = fetchBounded
  openid.enableNonRepudiationChecks(provider)
  if (client.issuer.startsWith('http:')) openid.allowInsecureRequests(provider)
  return provider
}

/** Throws if the discovery document or the signing keys cannot be read. */
export async function checkProvider(issuer: string): Promise<void> {
  const url = (await discover({ issuer })).jwks_uri as string
  const response = await fetchBounded(url, {
    signal: AbortSignal.timeout(TIMEOUT_S * 1000),
    redirect: 'manual',
  })
  const { keys } = (await response.json()) as { keys?: unknown }
  if (!Array.isArray(keys) || keys.length === 0) throw new OidcError(`${url} has no signing keys`)
}

/** Uses HTTP Basic if the provider supports it, which is the default, and the request body otherwise. */
function clientAuthentication(clientSecret: string): openid.ClientAuth {
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

/** Wraps errors of the library. A `TypeError` of `fetch` means that the provider cannot be reached. */
function rethrow(error: Error): never {
  if (error instanceof TypeError) throw error
  const { message, cause } = error
  if (cause instanceof OidcError) throw cause
  throw new OidcError(cause instanceof Error ? `${message}: ${cause.message}` : message)
}

function requireValidClaims({ azp, iat }: Claims, clientId: string, now: number): void {
  if (azp !== undefined && azp !== clientId)
    throw new OidcError('the azp claim of the ID token names another client')
  const ageS = now / 1000 - iat
  if (ageS > TOKEN_AGE_MAX_S + CLOCK_TOLERANCE_S || ageS < -CLOCK_TOLERANCE_S)
    throw new OidcError('the ID token was issued long ago, or in the future')
}

function requireAccessTokenHash(idToken: string, { at_hash }: Claims, accessToken: string): void {
  if (at_hash === undefined) return
  const { alg } = JSON.parse(Buffer.from(idToken.split('.', 1)[0] as string, 'base64url').toString())
  // The hash of the signature algorithm; Ed25519 uses SHA-512.
  const bits = /(256|384|512)$/.exec(alg)?.[0] ?? '512'
  const digest = createHash(`sha${bits}`).update(accessToken).digest()
  if (at_hash !== digest.subarray(0, digest.length / 2).toString('base64url'))
    throw new OidcError('the at_hash of the ID token does not match the access token')
}

/** `email` and `email_verified` come from one source: the ID token if it has both, otherwise userinfo. */
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
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > RESPONSE_BYTES_MAX) throw new OidcError(`${new URL(url).pathname} returned too many bytes`)
    chunks.push(chunk)
  }
  const received = Buffer.concat(chunks)
  if (ok) return new Response(received.length > 0 ? received : null, { status, headers })
  const code = errorCode(received.toString())
  throw new OidcError(`${new URL(url).pathname} returned status ${status}${code && `: ${code}`}`)
}

/** The code of an OAuth error (RFC 6749, 5.2), such as `invalid_client`; empty if the body has none. */
function errorCode(body: string): string {
  try {
    const { error } = JSON.parse(body)
    return typeof error === 'string' && ERROR_CODE.test(error) ? error : ''
  } catch {
    return ''
  }
}
