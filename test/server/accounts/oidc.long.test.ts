// Misbehaving identity providers: only a verified ID token signs in, and only to the linked account.
import assert from 'node:assert/strict'
import { createHash, createSecretKey } from 'node:crypto'
import { test } from 'node:test'
import { exportJWK, exportSPKI, generateKeyPair } from 'jose'
import {
  atHash,
  type Behavior,
  CLIENT_ID,
  CLIENT_SECRET,
  type HostileProvider,
  startHostileProvider,
} from '../../support/accounts/hostile-provider.ts'
import { addMember, linkFor, openBrowser, signIn } from '../../support/accounts/users.ts'
import { addNode, addWorkspace, serve } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { readRows, setRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'

async function setUp(t: Test, { engine = 'sqlite' as Engine, alg = 'RS256', env = {} } = {}) {
  const provider = await startHostileProvider(t, alg)
  const server = await serve(t, { engine, env: { ...provider.env, ...env } })
  const open = () => openBrowser(server.url)
  return { provider, server, open }
}

const seconds = (offset: number) => Math.floor(Date.now() / 1000) + offset

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Provider responses that must not sign in. */
const hostile: Record<string, (provider: HostileProvider) => Promise<Behavior> | Behavior> = {
  'no ID token': () => ({
    tokenResponse: { id_token: undefined },
    userinfo: { sub: 'subject of ann', email: 'ann@example.com', email_verified: true },
  }),
  'an ID token that is not a string': () => ({ tokenResponse: { id_token: { sub: 'x' } } }),
  'an ID token that is not a JWT': () => ({ idToken: () => 'opaque' }),
  'algorithm none': () => ({ idToken: (claims) => `${encoded({ alg: 'none' })}.${encoded(claims)}.` }),
  'HS256 under the client secret': ({ sign }) => ({
    idToken: (claims) =>
      sign(claims, createSecretKey(Buffer.from(CLIENT_SECRET)) as never, { alg: 'HS256', kid: 'k1' }),
  }),
  'HS256 under the public key': ({ sign, publicKey }) => ({
    idToken: async (claims) =>
      sign(claims, createSecretKey(Buffer.from(await exportSPKI(publicKey))) as never, {
        alg: 'HS256',
        kid: 'k1',
      }),
  }),
  'a signature by another key': async ({ sign }) => {
    const { privateKey } = await generateKeyPair('RS256')
    return { idToken: (claims) => sign(claims, privateKey) }
  },
  'an unknown key id': ({ sign }) => ({
    idToken: (claims) => sign(claims, undefined, { alg: 'RS256', kid: 'k2' }),
  }),
  'a key in the header of the token': async ({ sign }) => {
    const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true })
    const header = { alg: 'RS256', kid: 'k1', jwk: await exportJWK(publicKey) }
    return { idToken: (claims) => sign(claims, privateKey, header) }
  },
  'a key at a URL in the header of the token': async ({ sign }) => {
    const { privateKey } = await generateKeyPair('RS256')
    const header = { alg: 'RS256', kid: 'k1', jku: 'http://127.0.0.1:9/jwks' }
    return { idToken: (claims) => sign(claims, privateKey, header) }
  },
  'a signature that was cut off': ({ sign }) => ({
    idToken: async (claims) => (await sign(claims)).replace(/[^.]+$/, ''),
  }),
  'claims that were changed after signing': ({ sign }) => ({
    idToken: async (claims) => {
      const [header, , signature] = (await sign(claims)).split('.')
      return [header, encoded({ ...claims, sub: 'subject of bob' }), signature].join('.')
    },
  }),
  'another issuer': () => ({ claims: { iss: 'https://elsewhere.example.com' } }),
  'no issuer': () => ({ claims: { iss: undefined } }),
  'another audience': () => ({ claims: { aud: 'another client' } }),
  'no audience': () => ({ claims: { aud: undefined } }),
  'several audiences without azp': () => ({ claims: { aud: [CLIENT_ID, 'another client'] } }),
  'several audiences, issued to another': () => ({
    claims: { aud: [CLIENT_ID, 'another client'], azp: 'another client' },
  }),
  'one audience, issued to another': () => ({ claims: { azp: 'another client' } }),
  expired: () => ({ claims: { iat: seconds(-400), exp: seconds(-300) } }),
  'without expiry': () => ({ claims: { exp: undefined } }),
  'not valid yet': () => ({ claims: { nbf: seconds(300) } }),
  'issued in the future': () => ({ claims: { iat: seconds(300), exp: seconds(600) } }),
  'issued long ago': () => ({ claims: { iat: seconds(-3_600) } }),
  'without time of issue': () => ({ claims: { iat: undefined } }),
  'another nonce': () => ({ claims: { nonce: 'of another sign-in' } }),
  'no nonce': () => ({ claims: { nonce: undefined } }),
  'no subject': () => ({ claims: { sub: undefined } }),
  'an empty subject': () => ({ claims: { sub: '' } }),
  'a subject that is too long': () => ({ claims: { sub: 'x'.repeat(256) } }),
  'a subject with control characters': () => ({ claims: { sub: 'a\u0000b' } }),
  'a hash of another access token': () => ({ claims: { at_hash: atHash('another') } }),
  'a hash of an access token that is missing': () => ({
    claims: { at_hash: atHash('at') },
    tokenResponse: { access_token: undefined },
  }),
  'no access token': () => ({ tokenResponse: { access_token: undefined } }),
  'userinfo about another user': () => ({
    claims: { email: undefined, email_verified: undefined },
    userinfo: { sub: 'subject of mallory', email: 'ann@example.com', email_verified: true },
  }),
  'a redirect by the token endpoint': ({ issuer }) => ({
    onToken: (_request, response) => response.writeHead(307, { location: `${issuer}/userinfo` }).end(),
  }),
  'an error of the token endpoint': () => ({
    onToken: (_request, response) => response.writeHead(400).end('{"error":"invalid_grant"}'),
  }),
  'a token endpoint that never responds': () => ({ onToken: () => {} }),
  'a token response that is not JSON': () => ({ onToken: (_request, response) => response.end('<html>') }),
  'a token response of megabytes': () => ({ tokenResponse: { padding: 'x'.repeat(3_000_000) } }),
  'another state': () => ({ returned: { state: 'of another sign-in' } }),
  'a return in the name of another issuer': () => ({ returned: { iss: 'https://elsewhere.example.com' } }),
  'no code': () => ({ returned: { code: '' } }),
}

test('a provider response that cannot be verified does not sign in', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  assert.equal(await provider.signIn(open(), 'ann'), '/', 'a valid response signs in')
  for (const [what, behave] of Object.entries(hostile)) {
    const browser = open()
    assert.equal(await provider.signIn(browser, 'ann', await behave(provider)), '/sign-in?error=failed', what)
    assert.equal((await browser.get('/session')).status, 401, what)
  }
  assert.equal(await provider.signIn(open(), 'ann'), '/', 'a valid response still signs in')
})

test('all valid forms of provider responses sign in', async (t) => {
  for (const alg of ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519']) {
    const { provider, server, open } = await setUp(t, { alg })
    await linkFor(server, 'ann@example.com', 'owner')
    assert.equal(await provider.signIn(open(), 'ann'), '/', alg)
    const valid: Record<string, Behavior> = {
      'several audiences': { claims: { aud: [CLIENT_ID, 'another client'], azp: CLIENT_ID } },
      'a clock that is half a minute off': { claims: { iat: seconds(30), nbf: seconds(30) } },
      'an address only in userinfo': {
        claims: { email: undefined, email_verified: undefined },
        userinfo: { sub: 'subject of ann', email: 'ann@example.com', email_verified: true },
      },
      'an address that is not proven, once linked': { claims: { email_verified: false } },
      'a hash of the access token': {
        claims: { at_hash: atHash('at', alg.startsWith('Ed') ? 'sha512' : 'sha256') },
      },
      'no address at all, once linked': {
        claims: { email: undefined },
        userinfo: { sub: 'subject of ann' },
      },
    }
    for (const [what, behavior] of Object.entries(valid)) {
      const browser = open()
      assert.equal(await provider.signIn(browser, 'ann', behavior), '/', `${alg}: ${what}`)
      assert.equal((await browser.get('/session')).json.user.email, 'ann@example.com')
    }
    for (const request of provider.tokenRequests)
      assert.match(request.get('code_verifier') ?? '', /^[\w-]{43,}$/, 'each with PKCE')
  }
})

for (const engine of engines)
  test(`${engine}: an address is verified only if email_verified is the boolean true`, async (t) => {
    const { provider, server, open } = await setUp(t, { engine, env: { ADIT_OIDC_LINK_BY_EMAIL: 'true' } })
    await addMember(server, 'Ann', 'owner')
    await linkFor(server, 'bob@example.com', 'owner')
    for (const email_verified of ['false', 'true', 1, 0, {}, [], null, false, undefined])
      for (const login of ['ann', 'bob']) {
        const browser = open()
        const claims = { email_verified }
        const userinfo = { sub: `subject of ${login}`, email: `${login}@example.com`, email_verified }
        const to = await provider.signIn(browser, login, { claims, userinfo })
        assert.equal(to, '/sign-in?error=email_unverified', `${login}: ${JSON.stringify(email_verified)}`)
        assert.equal((await browser.get('/session')).status, 401)
      }
    // Each becomes an ASCII address when it is lowercased, or breaks a database.
    for (const email of ['\u212Aate@example.com', 'a\u0000@example.com', 'kate@ex\u0131mple.com']) {
      await linkFor(server, 'kate@example.com', 'owner')
      const claims = { email, email_verified: true }
      assert.equal(
        await provider.signIn(open(), 'kate', { claims }),
        '/sign-in?error=email_unverified',
        email,
      )
    }
    const mixed = {
      claims: { email: 'ann@example.com', email_verified: undefined },
      userinfo: { sub: 'subject of bob', email: 'bob@example.com', email_verified: true },
    }
    const browser = open()
    assert.equal(await provider.signIn(browser, 'bob', mixed), '/')
    assert.equal(
      (await browser.get('/session')).json.user.email,
      'bob@example.com',
      'the proof and the address come from the same place',
    )
  })

for (const engine of engines)
  test(`${engine}: an account is linked by its address only if the operator allows it`, async (t) => {
    const { provider, server, open } = await setUp(t, { engine })
    const ann = await addMember(server, 'Ann', 'owner')
    const rejected = open()
    assert.equal(await provider.signIn(rejected, 'ann'), '/sign-in?error=account_exists')
    assert.equal((await rejected.get('/session')).status, 401)
    assert.equal((await signIn(open(), ann.email)).status, 200, 'the password still works')
    assert.deepEqual(pluck(await readRows(server.services, 'identities'), 'provider_id'), ['credential'])
  })

test('an account linked by address stays linked to that subject only', async (t) => {
  const { provider, server, open } = await setUp(t, { env: { ADIT_OIDC_LINK_BY_EMAIL: 'true' } })
  const ann = await addMember(server, 'Ann', 'owner')
  const browser = open()
  assert.equal(await provider.signIn(browser, 'ann'), '/')
  assert.equal((await browser.get('/session')).json.user.id, ann.id)
  const moved = open()
  assert.equal(await provider.signIn(moved, 'ann', { claims: { email: 'ann@elsewhere.example' } }), '/')
  assert.equal((await moved.get('/session')).json.user.id, ann.id, 'by the subject, not by the address')
  const other = { claims: { sub: 'another user', email: 'ann@example.com' } }
  assert.equal(
    await provider.signIn(open(), 'ann', other),
    '/sign-in?error=account_exists',
    'an address that was reassigned at the provider does not open the account',
  )
})

test('the same subject of another issuer is a different identity', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  assert.equal(await provider.signIn(open(), 'ann'), '/')
  const identities = await readRows(server.services, 'identities')
  assert.deepEqual(pluck(identities, 'provider_id', 'account_id'), [
    [`oidc:${provider.issuer}`, 'subject of ann'],
  ])
  // As if the account had been linked while the server was configured with another issuer.
  await setRows(server.services, 'identities', { provider_id: 'oidc:https://old.example.com' })
  const mallory = { claims: { sub: 'subject of ann', email: 'mallory@example.com' } }
  assert.equal(await provider.signIn(open(), 'mallory', mallory), '/sign-in?error=not_invited')
})

test('only a user with the verified address accepts an invitation by single sign-on', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'member')
  assert.equal(await provider.signIn(open(), 'ann'), '/')
  const { workspace } = await addWorkspace(server, 'elsewhere')
  await linkFor(server, 'ann@example.com', 'owner', workspace.slug)
  const listWorkspacesAfter = async (behavior: Behavior) => {
    const browser = open()
    assert.equal(await provider.signIn(browser, 'ann', behavior), '/')
    return (await browser.get('/session')).json.workspaces.length
  }
  assert.equal(await listWorkspacesAfter({ claims: { email_verified: false } }), 1)
  assert.equal(await listWorkspacesAfter({ claims: { email: 'ann@elsewhere.example' } }), 1)
  assert.equal(await listWorkspacesAfter({}), 2)
})

for (const engine of engines)
  test(`${engine}: concurrent first sign-ins create one account, and both succeed`, async (t) => {
    const { provider, server, open } = await setUp(t, { engine })
    await linkFor(server, 'ann@example.com', 'owner')
    const browsers = Array.from({ length: 4 }, open)
    const ends = await Promise.all(browsers.map((browser) => provider.signIn(browser, 'ann')))
    assert.deepEqual(ends, ['/', '/', '/', '/'])
    const ids = await Promise.all(browsers.map(async (one) => (await one.get('/session')).json.user.id))
    assert.equal(new Set(ids).size, 1)
  })

for (const engine of engines)
  test(`${engine}: concurrent links of one subject to an account both succeed`, async (t) => {
    const { provider, server, open } = await setUp(t, { engine, env: { ADIT_OIDC_LINK_BY_EMAIL: 'true' } })
    await addMember(server, 'Ann', 'owner')
    const ends = await Promise.all([1, 2, 3, 4].map(() => provider.signIn(open(), 'ann')))
    assert.deepEqual(ends, ['/', '/', '/', '/'])
  })

test('a provider that describes another issuer, or unusable endpoints, is not used', async (t) => {
  const { provider, open } = await setUp(t)
  for (const discovery of [
    { issuer: 'https://elsewhere.example.com' },
    { issuer: undefined },
    { token_endpoint: undefined },
    { jwks_uri: undefined },
    { authorization_endpoint: 'javascript:alert(1)' },
  ]) {
    provider.behave({ discovery })
    const { status, json } = await open().post('/sign-in/sso')
    assert.equal(status, 503, JSON.stringify(discovery))
    assert.match(json.message, /identity provider/)
  }
  provider.behave({ discovery: { issuer: `${provider.issuer}/` } })
  assert.equal((await open().post('/sign-in/sso')).status, 200, 'a trailing slash does not matter')
})

test('the state of a sign-in is kept in an encrypted cookie, and removed on return', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  const browser = open()
  const { url } = (await browser.post('/sign-in/sso')).json
  const [cookie = ''] = browser.setCookies
  assert.match(cookie, /^adit\.sso=[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/)
  const { searchParams } = new URL(url)
  assert.equal(searchParams.get('code_challenge_method'), 'S256')
  for (const name of ['state', 'nonce', 'code_challenge'])
    assert.ok(!cookie.includes(searchParams.get(name) as string), name)
  assert.equal(await provider.signIn(browser, 'ann'), '/')
  assert.equal(browser.cookies.has('adit.sso'), false)
})

test('tokens and redirects of another provider do not sign in (mix-up)', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  const other = await startHostileProvider(t)
  const foreign: Record<string, Behavior> = {
    'its token': { idToken: (claims) => other.sign({ ...claims, iss: other.issuer }) },
    'its key': { idToken: (claims) => other.sign(claims) },
    'its name in the redirect': { returned: { iss: other.issuer } },
    'a longer name in the redirect': { returned: { iss: `${provider.issuer}.example.com` } },
  }
  for (const [what, behavior] of Object.entries(foreign))
    assert.equal(await provider.signIn(open(), 'ann', behavior), '/sign-in?error=failed', what)
  assert.equal(await provider.signIn(open(), 'ann', { returned: { iss: provider.issuer } }), '/')
  assert.equal(other.tokenRequests.length, 0)
})

test('a provider that names itself in redirects must do so', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  provider.behave({ discovery: { authorization_response_iss_parameter_supported: true } })
  assert.equal(await provider.signIn(open(), 'ann'), '/sign-in?error=failed')
  assert.equal(provider.tokenRequests.length, 0, 'the code is not sent anywhere')
  assert.equal(await provider.signIn(open(), 'ann', { returned: { iss: provider.issuer } }), '/')
})

test('state, nonce and PKCE verifier are of one sign-in, and a changed cookie has none', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  const browser = open()
  const [first, second] = [
    (await browser.post('/sign-in/sso')).json.url as string,
    (await browser.post('/sign-in/sso')).json.url as string,
  ].map((url) => new URL(url).searchParams)
  assert.ok(first && second)
  for (const name of ['state', 'nonce', 'code_challenge']) {
    assert.match(first.get(name) ?? '', /^[\w-]{43}$/)
    assert.notEqual(first.get(name), second.get(name))
  }
  const finish = async (value: string, state: string | null) => {
    const replay = open()
    replay.cookies.set('adit.sso', value)
    const query = new URLSearchParams({ code: 'code', state: state ?? '' })
    return (await replay.get(`/sign-in/sso/return?${query}`)).headers.get('location')
  }
  const cookie = browser.cookies.get('adit.sso') as string
  const flipped = `${cookie.slice(0, 30)}${cookie[30] === 'A' ? 'B' : 'A'}${cookie.slice(31)}`
  const session = (await addMember(server, 'Bob', 'owner')).cookies.get('adit.session_token') as string
  for (const value of [flipped, cookie.slice(0, -4), `AAAA${cookie}`, '', 'AAAA', session, 'x'.repeat(8_000)])
    assert.equal(await finish(value, second.get('state')), '/sign-in?error=failed')
  assert.equal(await finish(cookie, first.get('state')), '/sign-in?error=failed', 'of the other sign-in')
  assert.equal(provider.tokenRequests.length, 0)
  await finish(cookie, second.get('state'))
  const verifier = provider.tokenRequests[0]?.get('code_verifier') ?? ''
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  assert.equal(challenge, second.get('code_challenge'))
})

test('a sign-in completes once: reusing its cookie and state sends no request to the provider', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  const browser = open()
  const { url } = (await browser.post('/sign-in/sso')).json
  const state = new URL(url).searchParams.get('state') ?? ''
  const challenge = browser.cookies.get('adit.sso') as string
  const guess = (code: string) => {
    const replay = open()
    replay.cookies.set('adit.sso', challenge)
    return replay.get(`/sign-in/sso/return?${new URLSearchParams({ code, state })}`)
  }
  const returned = await Promise.all(Array.from({ length: 20 }, (_, index) => guess(`guess-${index}`)))
  for (const { status, headers } of returned)
    assert.deepEqual([status, headers.get('location')], [302, '/sign-in?error=failed'])
  assert.equal(provider.tokenRequests.length, 1)
  assert.equal(await provider.signIn(browser, 'ann'), '/', 'a new one is not affected')
})

for (const engine of engines)
  test(`${engine}: a sign-in completes once at all nodes together`, async (t) => {
    const { provider, server, open } = await setUp(t, { engine })
    const node = await addNode(t, server)
    const browser = open()
    const { url } = (await browser.post('/sign-in/sso')).json
    const state = new URL(url).searchParams.get('state') ?? ''
    const challenge = browser.cookies.get('adit.sso') as string
    const replays = [server.url, node.url, server.url, node.url].map((at) => {
      const replay = openBrowser(at)
      replay.cookies.set('adit.sso', challenge)
      return replay.get(`/sign-in/sso/return?${new URLSearchParams({ code: 'guess', state })}`)
    })
    for (const { headers } of await Promise.all(replays))
      assert.equal(headers.get('location'), '/sign-in?error=failed')
    assert.equal(provider.tokenRequests.length, 1)
  })

test('returns from the provider are limited to 60 per network in 15 minutes', async (t) => {
  const { open } = await setUp(t)
  const browser = open()
  const statuses: number[] = []
  for (let index = 0; index < 61; index++)
    statuses.push((await browser.get('/sign-in/sso/return?code=c&state=s')).status)
  assert.deepEqual(statuses, [...Array(60).fill(302), 429])
})
