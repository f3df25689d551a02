// Invitations that are accepted by single sign-on, signing keys that change, and sign-out at the provider.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAuth } from '../../../src/server/auth/sign-in.ts'
import { createSso } from '../../../src/server/auth/sso.ts'
import { createResetLink, getUserByEmail } from '../../../src/server/domain/accounts/users.ts'
import { archiveAsOperator } from '../../../src/server/domain/workspaces/archive.ts'
import {
  type Behavior,
  CLIENT_ID,
  CLIENT_SECRET,
  startHostileProvider,
} from '../../support/accounts/hostile-provider.ts'
import { addMember, linkFor, openBrowser, type TestBrowser } from '../../support/accounts/users.ts'
import { addWorkspace, operator, serve, type TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { readRows } from '../../support/databases/rows.ts'
import { pluck } from '../../support/pluck.ts'

async function setUp(t: Test, engine: Engine = 'sqlite', clock?: () => number) {
  const provider = await startHostileProvider(t)
  const server = await serve(t, { engine, env: provider.env, ...(clock && { clock }) })
  const open = () => openBrowser(server.url)
  return { provider, server, open }
}

const isOpen = async (server: TestServer, link: string) =>
  (await openBrowser(server.url).post('/links/read', { link })).status === 200

const slugs = async (browser: TestBrowser) => pluck((await browser.get('/session')).json.workspaces, 'slug')

for (const engine of engines) {
  test(`${engine}: an invitation is accepted by single sign-on once, and links the account`, async (t) => {
    const { provider, server, open } = await setUp(t, engine)
    const link = await linkFor(server, 'bob@example.com', 'admin')
    const bob = open()
    assert.equal(await provider.signIn(bob, 'bob', { link }), '/w/acme?joined')
    const { user, workspaces } = (await bob.get('/session')).json
    assert.deepEqual([user.email, user.hasPassword, workspaces[0].role], ['bob@example.com', false, 'admin'])
    assert.equal(await isOpen(server, link), false)
    assert.equal((await open().post('/sign-in/sso', { link })).status, 404, 'consumed')
    const again = open()
    assert.equal(await provider.signIn(again, 'bob'), '/', 'without the invitation, by issuer and subject')
    assert.equal((await again.get('/session')).json.user.id, user.id)
    const audit = (await bob.get('/workspaces/acme/audit')).json.entries
    assert.ok(audit.some(({ action }: { action: string }) => action === 'user.joined'))
  })

  test(`${engine}: of concurrent sign-ins with one invitation, one creates an account`, async (t) => {
    const { provider, server, open } = await setUp(t, engine)
    const link = await linkFor(server, 'bob@example.com', 'member')
    const subjects = ['1', '2', '3']
    const begun = await Promise.all(
      subjects.map((sub) => provider.begin(open(), 'bob', { link, claims: { sub } })),
    )
    const returned = await Promise.all(begun.map((finish) => finish()))
    assert.equal(returned.filter((location) => location === '/w/acme?joined').length, 1, returned.join())
    assert.equal((await readRows(server.services, 'users')).length, 1)
  })

  test(`${engine}: an invitation is not accepted with another or an unverified address, and stays open`, async (t) => {
    const { provider, server, open } = await setUp(t, engine)
    const link = await linkFor(server, 'bob@example.com', 'owner')
    const hostile: [string, string, Behavior][] = [
      ['mallory', 'wrong_email', {}],
      ['bob', 'email_unverified', { claims: { email_verified: false } }],
      ['bob', 'email_unverified', { claims: { email_verified: 'true' } }],
      [
        'bob',
        'email_unverified',
        { claims: { email: undefined }, userinfo: { sub: 'subject of bob', email_verified: true } },
      ],
      ['bob', 'failed', { returned: { iss: 'https://elsewhere.example.com' } }],
      ['bob', 'failed', { returned: { state: 'of another sign-in' } }],
      ['bob', 'failed', { claims: { nonce: 'of another sign-in' } }],
    ]
    for (const [login, error, behavior] of hostile) {
      const browser = open()
      const location = await provider.signIn(browser, login, { ...behavior, link })
      assert.equal(location, `/sign-in?error=${error}`, JSON.stringify(behavior))
      assert.equal((await browser.get('/session')).status, 401)
    }
    assert.equal(await isOpen(server, link), true)
    assert.equal(await provider.signIn(open(), 'bob', { link }), '/w/acme?joined')
  })
}

test('the sign-in for an invitation is completed only by the browser that began it, and once', async (t) => {
  const { provider, server, open } = await setUp(t)
  const link = await linkFor(server, 'bob@example.com', 'owner')
  const [bob, late, other] = [open(), open(), open()]
  const { url } = (await bob.post('/sign-in/sso', { link })).json
  assert.equal(new URL(url).searchParams.get('login_hint'), 'bob@example.com')
  assert.ok(!url.includes(link), 'the provider does not get the link')

  const finish = await provider.begin(bob, 'bob', { link })
  const finishLate = await provider.begin(late, 'bob', { link, claims: { sub: 'another subject' } })
  // The other browser has a sign-in of its own, and gets the code and state of Bob.
  await other.post('/sign-in/sso', { link: await linkFor(server, 'eve@example.com', 'member') })
  const own = new Map(bob.cookies)
  bob.cookies.set('adit.sso', other.cookies.get('adit.sso') as string)
  assert.equal(await finish(), '/sign-in?error=failed')
  assert.equal(provider.tokenRequests.length, 0)
  const restore = () => bob.cookies.set('adit.sso', own.get('adit.sso') as string)

  restore()
  assert.equal(await finish(), '/w/acme?joined')
  restore()
  assert.equal(await finish(), '/sign-in?error=failed', 'replayed with its own cookie')
  assert.equal(provider.tokenRequests.length, 1)
  assert.equal(await finishLate(), '/sign-in?error=invalid_invitation', 'used meanwhile')
  assert.equal((await late.get('/session')).status, 401)
})

test('only an open invitation is accepted: no reset link, no unknown one, none of an archived workspace', async (t) => {
  const { provider, server, open } = await setUp(t)
  await addWorkspace(server, 'other')
  const ann = await addMember(server, 'Ann', 'owner')
  const user = await getUserByEmail(server.services, ann.email)
  const reset = await createResetLink(server.services, operator, user, { disablesTwoFactor: false })
  const archived = await linkFor(server, 'bob@example.com', 'owner', 'other')
  const finish = await provider.begin(open(), 'bob', { link: archived })
  await archiveAsOperator(server.services, operator, 'other')
  for (const link of [archived, reset.secret, 'x'.repeat(43)])
    assert.equal((await open().post('/sign-in/sso', { link })).status, 404)
  assert.equal((await open().post('/sign-in/sso', { link: 'too short' })).status, 400)
  assert.equal(await finish(), '/sign-in?error=invalid_invitation', 'archived meanwhile')
})

test('a member who accepts another invitation by single sign-on joins that workspace, too', async (t) => {
  const { provider, server, open } = await setUp(t)
  await addWorkspace(server, 'other')
  await provider.signIn(open(), 'bob', { link: await linkFor(server, 'bob@example.com', 'member') })
  const bob = open()
  const link = await linkFor(server, 'bob@example.com', 'owner', 'other')
  assert.equal(await provider.signIn(bob, 'bob', { link }), '/w/other?joined')
  assert.deepEqual((await slugs(bob)).sort(), ['acme', 'other'])
})

test('an account with a password is not linked by an invitation, which stays open', async (t) => {
  const { provider, server, open } = await setUp(t)
  await addMember(server, 'Ann', 'owner')
  await addWorkspace(server, 'other')
  const link = await linkFor(server, 'ann@example.com', 'owner', 'other')
  assert.equal(await provider.signIn(open(), 'ann', { link }), '/sign-in?error=account_exists')
  assert.equal(await isOpen(server, link), true)
})

test('an unknown key id reads the keys of the provider once, at most every minute', async (t) => {
  let now = Date.now()
  const { provider, server, open } = await setUp(t, 'sqlite', () => now)
  await linkFor(server, 'ann@example.com', 'owner')
  const signedWith = (kid: string): Behavior => ({
    idToken: (claims) => provider.sign(claims, undefined, { alg: 'RS256', kid }),
  })
  assert.equal(await provider.signIn(open(), 'ann', signedWith('k1')), '/')
  assert.equal(await provider.signIn(open(), 'ann', signedWith('k1')), '/')
  assert.equal(provider.keyRequests(), 1)
  provider.publishKeys('k2')
  assert.equal(await provider.signIn(open(), 'ann', signedWith('k2')), '/', 'the keys were changed')
  assert.equal(provider.keyRequests(), 2)
  for (let each = 0; each < 3; each++)
    assert.equal(await provider.signIn(open(), 'ann', signedWith('k3')), '/sign-in?error=failed')
  assert.equal(provider.keyRequests(), 2, 'not again within a minute')
  now += 60_000
  for (let each = 0; each < 3; each++)
    assert.equal(await provider.signIn(open(), 'ann', signedWith('k3')), '/sign-in?error=failed')
  assert.equal(provider.keyRequests(), 3)
})

test('signing out ends the session at the provider, with a URL that is not cached, and deletes the ID token', async (t) => {
  const { provider, server, open } = await setUp(t)
  await linkFor(server, 'ann@example.com', 'owner')
  const end_session_endpoint = `${provider.issuer}/end?x=1`
  provider.behave({ discovery: { end_session_endpoint } })
  const ann = open()
  assert.equal(await provider.signIn(ann, 'ann'), '/')
  const stored = () => server.services.store.db.selectFrom('sessions').select('id_token').execute()
  const [session] = await stored()
  assert.ok(session?.id_token && !session.id_token.includes('eyJ'), 'encrypted')
  const { json, headers, status } = await ann.post('/sign-out')
  assert.equal(status, 200)
  assert.equal(headers.get('cache-control'), 'no-store')
  const url = new URL(json.providerUrl)
  assert.equal(url.href.split('&')[0], end_session_endpoint)
  assert.match(url.searchParams.get('id_token_hint') as string, /^eyJ/)
  assert.equal(url.searchParams.get('post_logout_redirect_uri'), `${server.url}/sign-in`)
  assert.deepEqual(await stored(), [])
  assert.equal((await ann.get('/session')).status, 401)
})

test('signing out works without a session at the provider, and while the provider fails', async (t) => {
  let now = Date.now()
  const { provider, server, open } = await setUp(t, 'sqlite', () => now)
  const ann = await addMember(server, 'Ann', 'owner')
  assert.deepEqual((await ann.post('/sign-out')).json, { done: true, providerUrl: null })
  await linkFor(server, 'bob@example.com', 'owner')
  const none = open()
  assert.equal(await provider.signIn(none, 'bob'), '/')
  assert.equal((await none.post('/sign-out')).json.providerUrl, null, 'it has no end_session_endpoint')
  assert.equal((await none.get('/session')).status, 401)

  const failing = open()
  assert.equal(await provider.signIn(failing, 'bob'), '/')
  // The discovery document is read again after an hour.
  now += 61 * 60_000
  provider.behave({ discovery: { token_endpoint: undefined } })
  assert.equal((await failing.post('/sign-out')).json.providerUrl, null)
  assert.equal((await failing.get('/session')).status, 401)
})

test('what the provider rejects is logged with its reason, and without secrets', async (t) => {
  const { provider, server } = await setUp(t)
  const problems: string[] = []
  const settings = {
    services: server.services,
    secret: SECRET,
    https: false,
    onProblem: (_level: string, message: string) => void problems.push(message),
  }
  const sso = createSso(
    settings,
    createAuth(settings),
    { issuer: provider.issuer, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET, linkByEmail: false },
    server.url,
  )
  provider.behave({ discovery: { issuer: 'https://other.example.com' } })
  await assert.rejects(sso.begin())
  assert.match(problems.at(-1) ?? '', /names another issuer: https:\/\/other\.example\.com\./)
  provider.behave({})
  const { result, cookies } = await sso.begin()
  const state = new URL(result.url).searchParams.get('state') as string
  const [cookie = ''] = cookies.map((text) => text.split(';', 1)[0])
  provider.behave({
    onToken: (_request, response) =>
      response.writeHead(401).end(JSON.stringify({ error: 'invalid_client', error_description: 'secret' })),
  })
  const browser = { cookie, address: '192.0.2.1', agent: '' }
  assert.deepEqual((await sso.finish(browser, { code: 'code', state })).result, { failure: 'failed' })
  assert.equal(problems.at(-1), 'single sign-on failed: /token returned status 401: invalid_client')
})
