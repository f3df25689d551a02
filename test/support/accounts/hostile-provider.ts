// An OpenID Connect provider whose responses a test controls: valid by default.
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair, type JWTHeaderParameters, type JWTPayload, SignJWT } from 'jose'
import type { Test } from '../cleanup.ts'
import { listen } from '../network/listen.ts'
import type { TestBrowser } from './users.ts'

type Claims = Record<string, unknown>

export interface Behavior {
  /** Merged into the default claims of the ID token; undefined removes a claim. */
  claims?: Claims
  /** Replaces the signed ID token. */
  idToken?: (claims: Claims) => Promise<string> | string
  /** Merged into the token response; undefined removes a member. */
  tokenResponse?: Claims
  userinfo?: Claims
  /** Merged into the discovery document. */
  discovery?: Claims
  /** Replaces the token endpoint. */
  onToken?: (request: IncomingMessage, response: ServerResponse) => void
  /** Merged into the query parameters of the redirect back. */
  returned?: Record<string, string>
}

export type HostileProvider = Awaited<ReturnType<typeof startHostileProvider>>

export const CLIENT_ID = 'adit'
export const CLIENT_SECRET = 'shared with the provider, and long enough for HS256'

export async function startHostileProvider(t: Test, alg = 'RS256') {
  const keys = await generateKeyPair(alg, { extractable: true })
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'k1', alg, use: 'sig' }
  let published: object[] = [jwk]
  let keyRequests = 0
  let behavior: Behavior = {}
  const claimsByCode = new Map<string, Claims>()
  const tokenRequests: URLSearchParams[] = []

  const sign = (payload: Claims, key = keys.privateKey, header: JWTHeaderParameters = { alg, kid: 'k1' }) =>
    new SignJWT(payload as JWTPayload).setProtectedHeader(header).sign(key)

  async function respondToToken(request: IncomingMessage, response: ServerResponse) {
    let body = ''
    for await (const chunk of request) body += chunk
    const form = new URLSearchParams(body)
    tokenRequests.push(form)
    if (behavior.onToken) return behavior.onToken(request, response)
    const idToken = await (behavior.idToken ?? sign)(claimsByCode.get(form.get('code') ?? '') ?? {})
    const defaults = { access_token: 'at', token_type: 'Bearer', expires_in: 60, id_token: idToken }
    json(response, { ...defaults, ...behavior.tokenResponse })
  }

  const server = createServer((request, response) => {
    switch (new URL(request.url as string, issuer).pathname) {
      case '/.well-known/openid-configuration':
        return json(response, { ...discovery(), ...behavior.discovery })
      case '/jwks':
        keyRequests += 1
        return json(response, { keys: published })
      case '/token':
        return void respondToToken(request, response)
      case '/userinfo':
        return json(response, behavior.userinfo ?? {})
      default:
        response.writeHead(404).end()
    }
  })
  const port = await listen(t, server)
  const issuer = `http://127.0.0.1:${port}`
  const discovery = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    id_token_signing_alg_values_supported: [alg, 'HS256', 'none'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  })

  /** Begins to sign in; the returned function completes it, and returns the final location of the browser. */
  async function begin(
    browser: TestBrowser,
    login: string,
    { link, ...next }: Behavior & { link?: string } = {},
  ): Promise<() => Promise<string>> {
    const begun = await browser.post('/sign-in/sso', { link })
    if (begun.status !== 200) throw new Error(begun.text)
    const { searchParams } = new URL(begun.json.url)
    const now = Math.floor(Date.now() / 1000)
    behavior = next
    const code = `code-${claimsByCode.size}`
    claimsByCode.set(code, {
      iss: issuer,
      aud: CLIENT_ID,
      sub: `subject of ${login}`,
      iat: now,
      exp: now + 60,
      nonce: searchParams.get('nonce') ?? undefined,
      email: `${login}@example.com`,
      email_verified: true,
      name: login,
      ...next.claims,
    })
    const query = { code, state: searchParams.get('state') ?? '', ...next.returned }
    return async () => {
      const back = await browser.get(`/sign-in/sso/return?${new URLSearchParams(query)}`)
      if (back.status !== 302) throw new Error(`${back.status} ${back.text}`)
      return back.headers.get('location') as string
    }
  }

  return {
    issuer,
    sign,
    begin,
    publicKey: keys.publicKey,
    tokenRequests,
    keyRequests: () => keyRequests,
    /** Publishes the same key under these ids. */
    publishKeys(...ids: string[]) {
      published = ids.map((kid) => ({ ...jwk, kid }))
    },
    env: {
      ADIT_OIDC_ISSUER: issuer,
      ADIT_OIDC_CLIENT_ID: CLIENT_ID,
      ADIT_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    },
    /** Until the next sign-in begins. */
    behave(next: Behavior) {
      behavior = next
    },
    /**
     * Signs in as `login`, with the address <login>@example.com, and accepts an invitation if there is one;
     * returns the final location of the browser.
     */
    signIn: async (...args: Parameters<typeof begin>): Promise<string> => (await begin(...args))(),
  }
}

export function atHash(accessToken: string, hash: 'sha256' | 'sha512' = 'sha256'): string {
  const digest = createHash(hash).update(accessToken).digest()
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

function json(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
