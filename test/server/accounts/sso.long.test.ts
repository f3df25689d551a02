// Single sign-on with a real OpenID Connect provider.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import Provider from 'oidc-provider'
import { setDisabled } from '../../../src/server/domain/accounts/users.ts'
import { addMember, linkFor, openBrowser, type TestBrowser } from '../../support/accounts/users.ts'
import { addWorkspace, operator, serve } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { listen } from '../../support/network/listen.ts'
import { freePort } from '../../support/processes/ports.ts'

const BASE = 'https://adit.example.com'
const SSO_COOKIE = '__Host-adit.sso'

/** A user `x` of the provider has the address x@example.com or a given one, verified for all except Eve. */
async function startProvider(t: Test, addresses: ReadonlyMap<string, string> = new Map()) {
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'adit',
        client_secret: 'shared with the provider',
        redirect_uris: [`${BASE}/dashboard/api/sign-in/sso/return`],
        post_logout_redirect_uris: [`${BASE}/sign-in`],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: false,
    cookies: { keys: ['only for this test'] },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({
        sub: id,
        email: addresses.get(id) ?? `${id}@example.com`,
        email_verified: id !== 'eve',
        name: `${id}\u202e of\u2028the\u200b provider`,
      }),
    }),
    features: { devInteractions: { enabled: true } },
  })
  const server = provider.listen(port, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => {
    server.closeAllConnections()
    server.close()
  })
  return settingsFor(issuer)
}

const settingsFor = (issuer: string) => ({
  ADIT_BASE_URL: BASE,
  ADIT_OIDC_ISSUER: issuer,
  ADIT_OIDC_CLIENT_ID: 'adit',
  ADIT_OIDC_CLIENT_SECRET: 'shared with the provider',
})

/** The browser's part at the provider: sign in, consent, follow the redirect. */
async function signInAtProvider(start: string, login: string): Promise<URL> {
  const cookies = new Map<string, string>()
  const go = async (url: string, init: RequestInit = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url, { redirect: 'manual', ...init, headers: { ...init.headers, cookie } })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    return response
  }
  let at = start
  while (!at.startsWith(BASE)) {
    let response = await go(at)
    if (!response.headers.has('location')) {
      const page = await response.text()
      const action = /action="([^"]+)"/.exec(page)?.[1] as string
      const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] as string
      response = await go(new URL(action, at).href, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ prompt, login, password: 'x' }),
      })
    }
    at = new URL(response.headers.get('location') as string, at).href
  }
  return new URL(at)
}

/** The whole sign-in; returns the final location of the browser. */
async function signInThere(browser: TestBrowser, login: string): Promise<string> {
  const { json, status, text } = await browser.post('/sign-in/sso')
  assert.equal(status, 200, text)
  const { search } = await signInAtProvider(json.url, login)
  const back = await browser.get(`/sign-in/sso/return${search}`)
  assert.equal(back.status, 302, back.text)
  return back.headers.get('location') as string
}

/** The operator trusts the provider's addresses. */
const setUp = async (t: Test, engine: Engine, addresses?: ReadonlyMap<string, string>) =>
  serve(t, { engine, env: { ...(await startProvider(t, addresses)), ADIT_OIDC_LINK_BY_EMAIL: 'true' } })

for (const engine of engines)
  test(`${engine}: only linked or invited users can sign in with the provider`, async (t) => {
    const server = await setUp(t, engine)
    const open = () => openBrowser(server.url, BASE)
    assert.match((await open().get('/sign-in')).json.sso, /^127\.0\.0\.1:\d+$/)

    const ann = await addMember(server, 'Ann', 'owner')
    const known = open()
    assert.equal(await signInThere(known, 'ann'), '/')
    const { user } = (await known.get('/session')).json
    assert.deepEqual([user.id, user.name], [ann.id, 'Ann'])

    await linkFor(server, 'bob@example.com', 'admin')
    const invited = open()
    assert.equal(await signInThere(invited, 'bob'), '/')
    const { user: bob, workspaces } = (await invited.get('/session')).json
    assert.deepEqual([bob.email, bob.hasPassword], ['bob@example.com', false])
    assert.equal(bob.name, 'bob of the provider', 'without disallowed characters')
    assert.deepEqual(workspaces, [
      { slug: 'acme', name: 'Acme', role: 'admin', needsTwoFactor: false, archive: null },
    ])
    await addWorkspace(server, 'elsewhere')
    await linkFor(server, 'bob@example.com', 'member', 'elsewhere')
    const again = open()
    assert.equal(await signInThere(again, 'bob'), '/', 'and comes back')
    assert.equal(
      (await again.get('/session')).json.workspaces.length,
      2,
      'a later invitation is accepted too',
    )
    const kept = await server.services.store.db.selectFrom('identities').selectAll().execute()
    assert.ok(!JSON.stringify(kept).includes('eyJ'), 'no token of the provider is stored')

    const { providerUrl } = (await again.post('/sign-out')).json
    const signOutPage = await fetch(providerUrl)
    assert.equal(signOutPage.status, 200, 'the provider accepts the ID token and the URL to return to')
    assert.match(await signOutPage.text(), /\/session\/end\/confirm/)

    const stranger = open()
    assert.equal(await signInThere(stranger, 'mallory'), '/sign-in?error=not_invited')
    assert.equal((await stranger.get('/session')).status, 401)
    await linkFor(server, 'eve@example.com', 'owner')
    assert.equal(await signInThere(open(), 'eve'), '/sign-in?error=email_unverified', 'an unverified address')

    await setDisabled(server.services, operator, 'bob@example.com', true)
    const revoked = open()
    assert.equal(await signInThere(revoked, 'bob'), '/sign-in?error=disabled')
    assert.equal((await revoked.get('/session')).status, 401)
  })

for (const engine of engines)
  test(`${engine}: a user whose address changes at the provider keeps the account, and gets no other`, async (t) => {
    const addresses = new Map<string, string>()
    const server = await setUp(t, engine, addresses)
    const accountOf = async (login: string) => {
      const browser = openBrowser(server.url, BASE)
      const to = await signInThere(browser, login)
      if (to !== '/') return to
      const { user, workspaces } = (await browser.get('/session')).json
      return { id: user.id, email: user.email, workspaces: workspaces.length }
    }
    const ann = await addMember(server, 'Ann', 'owner')
    await linkFor(server, 'bob@example.com', 'member')
    const bob = await accountOf('bob')
    await addWorkspace(server, 'elsewhere')
    await linkFor(server, 'carol@example.com', 'owner', 'elsewhere')
    for (const address of [ann.email, 'carol@example.com', 'new@example.com']) {
      addresses.set('bob', address)
      assert.deepEqual(await accountOf('bob'), bob, address)
    }
    addresses.set('mallory', 'bob@example.com')
    assert.equal(await accountOf('mallory'), '/sign-in?error=account_exists', 'the address that Bob had')
    addresses.delete('bob')
    assert.deepEqual(await accountOf('bob'), bob)
  })

test('an account with an unverified address is not linked by that address', async (t) => {
  const server = await setUp(t, 'sqlite')
  const ann = await addMember(server, 'Ann', 'owner')
  // Ann uses the link for Carl's address to create an account for herself.
  const { link } = (
    await ann.post('/workspaces/acme/invitations', { email: 'carl@example.com', role: 'member' })
  ).json
  const taken = openBrowser(server.url, BASE)
  const use = { link: link.split('#')[1], name: 'Not Carl', password: 'a password of Ann' }
  assert.equal((await taken.post('/links/redeem', use)).status, 200)
  const carl = openBrowser(server.url, BASE)
  assert.equal(await signInThere(carl, 'carl'), '/sign-in?error=account_exists')
  assert.equal((await carl.get('/session')).status, 401)
})

test('a return that another browser or site causes does not sign in, and ends no sign-in', async (t) => {
  const server = await setUp(t, 'sqlite')
  await addMember(server, 'Ann', 'owner')
  const browser = openBrowser(server.url, BASE)
  const { url } = (await browser.post('/sign-in/sso')).json
  const { search } = await signInAtProvider(url, 'ann')
  const other = openBrowser(server.url, BASE)
  assert.match(
    (await other.get(`/sign-in/sso/return${search}`)).headers.get('location') as string,
    /error=failed/,
  )
  assert.equal((await other.get('/session')).status, 401, 'the code is bound to its browser')
  // Any site can cause such a request; it must not end the sign-in that is pending.
  for (const query of [
    'error=access_denied&state=x',
    'error=access_denied',
    'error=server_error',
    'code=c',
  ]) {
    const forged = await browser.get(`/sign-in/sso/return?${query}`)
    assert.equal(forged.headers.get('location'), '/sign-in?error=failed', query)
    assert.ok(browser.cookies.has(SSO_COOKIE), query)
  }
  const state = new URL(url).searchParams.get('state')
  const denied = await browser.get(`/sign-in/sso/return?error=access_denied&state=${state}`)
  assert.equal(denied.headers.get('location'), '/sign-in?error=canceled')
  assert.ok(!browser.cookies.has(SSO_COOKIE))
  assert.equal((await browser.get('/session')).status, 401)
})

test('a provider that does not respond does not delay sign-ins with a password', async (t) => {
  const port = await listen(t, createServer())
  const server = await serve(t, { engine: 'sqlite', env: settingsFor(`http://127.0.0.1:${port}`) })
  const browser = openBrowser(server.url, BASE)
  const pending = browser.post('/sign-in/sso')
  const ann = await addMember(server, 'Ann', 'owner')
  assert.equal((await ann.get('/session')).status, 200)
  const { status, json } = await pending
  assert.equal(status, 503)
  assert.match(json.message, /identity provider cannot be reached/)
})
