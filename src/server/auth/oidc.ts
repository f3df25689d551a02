// OpenID Connect client: discovery, authorization code flow with PKCE, and the identity from ID token and
// userinfo. Responses are limited in size and time, and redirects are not followed.
import { createHash } from 'node:crypto'
import { createRemoteJWKSet, customFetch } from 'jose'
import { isEmail } from '../../contract/fields.ts'
import type { VerifiedIdentity } from '../domain/accounts/identities.ts'
import { type Claims, OidcError, verifyIdToken } from './id-token.ts'

interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
  redirectUri: string
  clock: () => number
}

/** The secrets of one sign-in, known only to the browser that started it. */
export interface Challenge {
  state: string
  nonce: string
  codeVerifier: string
}

interface Provider {
  /** As in the discovery document, where it may end in a slash. */
  issuer: string
  authorizationEndpoint: string
  tokenEndpoint: string
  userinfoEndpoint: string | undefined
  authMethod: 'basic' | 'post'
  requiresIss: boolean
  keys: ReturnType<typeof createRemoteJWKSet>
}

const SCOPES = 'openid email profile'
const TIMEOUT_MS = 5_000
const RESPONSE_BYTES_MAX = 512 * 1024
/** Cache lifetime of the discovery document; signing keys are cached by jose. */
const DISCOVERY_MS = 60 * 60 * 1000
/** OpenID Connect Core 1.0, 2: at most 255 ASCII characters. */
const SUBJECT = /^[\x20-\x7e]{1,255}$/

export function createOidcClient(settings: OidcSettings) {
  const { issuer, clientId, clientSecret, redirectUri, clock } = settings

  let cached: { provider: Promise<Provider>; expiresAt: number } | undefined
  function getProvider(): Promise<Provider> {
    if (cached && clock() < cached.expiresAt) return cached.provider
    const provider = discover(issuer)
    cached = { provider, expiresAt: clock() + DISCOVERY_MS }
    provider.catch(() => {
      if (cached?.provider === provider) cached = undefined
    })
    return provider
  }

  async function exchange({ tokenEndpoint, authMethod }: Provider, code: string, codeVerifier: string) {
    const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri }
    const secrets = authMethod === 'post' ? { client_id: clientId, client_secret: clientSecret } : {}
    const body = new URLSearchParams({ ...form, code_verifier: codeVerifier, ...secrets })
    const headers = authMethod === 'basic' ? { authorization: basic(clientId, clientSecret) } : {}
    const { id_token, access_token } = await fetchJson(tokenEndpoint, { method: 'POST', body, headers })
    if (typeof id_token !== 'string') throw new OidcError('the token response has no ID token')
    return { idToken: id_token, accessToken: typeof access_token === 'string' ? access_token : undefined }
  }

  return {
    async authorizationUrl({ state, nonce, codeVerifier }: Challenge): Promise<string> {
      const url = new URL((await getProvider()).authorizationEndpoint)
      const parameters = {
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: SCOPES,
        state,
        nonce,
        code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
        code_challenge_method: 'S256',
      }
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
      return url.href
    },

    /** `returned` are the parameters of the redirect, whose state was checked by the caller. */
    async identify(
      returned: { code: string; iss?: string | undefined },
      { nonce, codeVerifier }: Challenge,
    ): Promise<VerifiedIdentity> {
      const provider = await getProvider()
      if (returned.iss === undefined ? provider.requiresIss : returned.iss !== provider.issuer)
        throw new OidcError('the iss parameter of the redirect names another issuer')
      const { idToken, accessToken } = await exchange(provider, returned.code, codeVerifier)
      const expected = { issuer: provider.issuer, clientId, nonce, accessToken, now: clock() }
      const claims = await verifyIdToken(idToken, provider.keys, expected)
      const profile = await findProfile(claims, provider.userinfoEndpoint, accessToken)
      return { issuer, ...identityOf(claims, profile) }
    },
  }
}

/** Reads the configuration of the provider. Its signing keys are loaded when the first one is needed. */
export async function discover(issuer: string): Promise<Provider> {
  const discoveryUrl = `${issuer}/.well-known/openid-configuration`
  const found = await fetchJson(discoveryUrl)
  if (typeof found.issuer !== 'string' || found.issuer.replace(/\/$/, '') !== issuer)
    throw new OidcError(`${discoveryUrl} names another issuer; set ADIT_OIDC_ISSUER to the one it names`)
  const endpoint = (name: string) => requireUrl(found[name], name, issuer)
  const methods = found.token_endpoint_auth_methods_supported
  return {
    issuer: found.issuer,
    authorizationEndpoint: endpoint('authorization_endpoint'),
    tokenEndpoint: endpoint('token_endpoint'),
    userinfoEndpoint: found.userinfo_endpoint === undefined ? undefined : endpoint('userinfo_endpoint'),
    authMethod: Array.isArray(methods) && !methods.includes('client_secret_basic') ? 'post' : 'basic',
    requiresIss: found.authorization_response_iss_parameter_supported === true,
    keys: createRemoteJWKSet(new URL(endpoint('jwks_uri')), {
      timeoutDuration: TIMEOUT_MS,
      [customFetch]: fetchBounded,
    }),
  }
}

/**
 * The address and its verification come from the same source: the ID token if it has both, otherwise
 * userinfo.
 */
async function findProfile(
  claims: Claims,
  userinfoEndpoint: string | undefined,
  accessToken: string | undefined,
): Promise<Record<string, unknown>> {
  const isComplete = claims.email !== undefined && claims.email_verified !== undefined
  if (isComplete || userinfoEndpoint === undefined || accessToken === undefined) return claims
  const headers = { authorization: `Bearer ${accessToken}` }
  const userinfo = await fetchJson(userinfoEndpoint, { headers })
  if (userinfo.sub !== claims.sub)
    throw new OidcError('the subject of userinfo differs from that of the ID token')
  return userinfo
}

function identityOf({ sub }: Claims, profile: Record<string, unknown>): Omit<VerifiedIdentity, 'issuer'> {
  if (typeof sub !== 'string' || !SUBJECT.test(sub)) throw new OidcError('the ID token has no usable subject')
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
function requireUrl(value: unknown, name: string, issuer: string): string {
  const url = typeof value === 'string' ? URL.parse(value) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && issuer.startsWith('http:'))
  if (!url || !isSafe) throw new OidcError(`the discovery document has no usable ${name}`)
  return url.href
}

/** RFC 6749, 2.3.1: both parts are form-encoded before they are joined. */
function basic(clientId: string, clientSecret: string): string {
  const encode = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)
  return `Basic ${Buffer.from(`${encode(clientId)}:${encode(clientSecret)}`).toString('base64')}`
}

async function fetchJson(url: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const headers = { accept: 'application/json', ...(init.headers as Record<string, string>) }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const response = await fetchBounded(url, { ...init, headers, signal, redirect: 'manual' })
  if (!response.ok) throw new OidcError(`${new URL(url).pathname} returned status ${response.status}`)
  const json: unknown = await response.json().catch(() => undefined)
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new OidcError(`${new URL(url).pathname} did not return a JSON object`)
  return json as Record<string, unknown>
}

async function fetchBounded(url: string, init: RequestInit): Promise<Response> {
  const { body, status, headers } = await fetch(url, init)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > RESPONSE_BYTES_MAX) throw new OidcError(`${new URL(url).pathname} returned too many bytes`)
    chunks.push(chunk)
  }
  return new Response(chunks.length > 0 ? Buffer.concat(chunks) : null, { status, headers })
}
