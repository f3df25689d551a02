// Signing in and out, sessions and attempt limits.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setDisabled } from '../../../src/server/domain/accounts/users.ts'
import {
  addMember,
  openBrowser,
  PASSWORD,
  serveWithOwner,
  signIn,
  type TestBrowser,
} from '../../support/accounts/users.ts'
import { operator, serve, serveThroughRelay } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { setRows } from '../../support/databases/rows.ts'
import { until } from '../../support/until.ts'

for (const engine of engines) {
  test(`${engine}: each sign-in creates its own session, and signing out ends it`, async (t) => {
    const server = await serve(t, { engine })
    const { email, cookies: first } = await addMember(server, 'Ann', 'owner')
    const browser = openBrowser(server.url)
    assert.equal((await browser.get('/session')).status, 401)
    const planted = 'adit.session_token'
    browser.cookies.set(planted, 'chosen-by-an-attacker')
    assert.deepEqual((await signIn(browser, email.toUpperCase())).json, { next: 'signed_in' })
    assert.notEqual(browser.cookies.get(planted), 'chosen-by-an-attacker')
    assert.notEqual(browser.cookies.get(planted), first.get(planted))
    const { user, workspaces } = (await browser.get('/session')).json
    assert.deepEqual([user.name, user.email, user.hasPassword], ['Ann', email, true])
    assert.deepEqual(workspaces, [
      { slug: 'acme', name: 'Acme', role: 'owner', needsTwoFactor: false, archive: null },
    ])
    const before = new Map(browser.cookies)
    assert.equal((await browser.post('/sign-out')).status, 200)
    assert.deepEqual([...browser.cookies.keys()], ['adit.known_browser'], 'the cookie is cleared')
    for (const [name, value] of before) browser.cookies.set(name, value)
    assert.equal((await browser.get('/session')).status, 401, 'and no longer accepted')
  })

  test(`${engine}: sessions can be listed, and ended one by one or all together`, async (t) => {
    const server = await serve(t, { engine })
    const here = await addMember(server, 'Ann', 'owner')
    const [there, elsewhere] = [openBrowser(server.url), openBrowser(server.url)]
    for (const browser of [there, elsewhere]) await signIn(browser, here.email)
    const { sessions } = (await here.get('/account/sessions')).json
    assert.equal(sessions.length, 3)
    assert.equal(sessions.filter(({ isThis }: { isThis: boolean }) => isThis).length, 1)
    const { id } = (await there.get('/account/sessions')).json.sessions.find(
      ({ isThis }: { isThis: boolean }) => isThis,
    )
    assert.equal((await here.remove(`/account/sessions/${id}`)).status, 200)
    assert.equal((await here.remove(`/account/sessions/${id}`)).status, 404)
    assert.equal((await there.get('/session')).status, 401)
    const other = await addMember(server, 'Bob', 'owner')
    const [his] = (await other.get('/account/sessions')).json.sessions
    assert.equal(
      (await here.remove(`/account/sessions/${his.id}`)).status,
      404,
      'a session of another user is not found',
    )
    assert.equal((await here.remove('/account/sessions')).status, 200)
    for (const browser of [here, elsewhere]) assert.equal((await browser.get('/session')).status, 401)
    assert.equal((await other.get('/session')).status, 200)
  })

  test(`${engine}: a session expires after a day without use, and after 14 days in any case`, async (t) => {
    const server = await serve(t, { engine })
    const idle = await addMember(server, 'Ida', 'owner')
    const old = await addMember(server, 'Otto', 'owner')
    const set = (userId: string, values: object) =>
      setRows(server.services, 'sessions', values, { user_id: userId })
    const day = 86_400_000
    await set(idle.id, { expires_at: Date.now() - 1000 })
    assert.equal((await idle.get('/session')).status, 401)
    await set(old.id, { created_at: Date.now() - 14 * day + 60_000 })
    assert.equal((await old.get('/session')).status, 200)
    await set(old.id, { created_at: Date.now() - 14 * day - 60_000 })
    assert.equal((await old.get('/session')).status, 401)
    // A session in use is extended, every few minutes.
    const busy = await addMember(server, 'Berta', 'owner')
    await set(busy.id, { expires_at: Date.now() + day / 2 })
    assert.equal((await busy.get('/session')).status, 200)
    const [{ expiresAt }] = (await busy.get('/account/sessions')).json.sessions
    assert.ok(Date.parse(expiresAt) > Date.now() + 0.9 * day, expiresAt)
  })

  test(`${engine}: a disabled user is signed out with the next request, and cannot sign in`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    await setDisabled(server.services, operator, ann.email, true)
    assert.equal((await ann.get('/session')).status, 401)
    const again = await signIn(openBrowser(server.url), ann.email)
    assert.equal(again.status, 401)
    assert.match(again.json.message, /^Incorrect email address or password/)
    await setDisabled(server.services, operator, ann.email, false)
    assert.equal((await ann.get('/session')).status, 401, 'an earlier session stays ended')
    assert.equal((await signIn(openBrowser(server.url), ann.email)).status, 200)
  })

  test(`${engine}: a sign-in with the old password during a password change keeps no session`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine, hasCostlyPasswords: true })
    const others = Array.from({ length: 8 }, () => openBrowser(server.url))
    const [changed] = await Promise.all([
      ann.post('/account/password', { current: PASSWORD, password: 'another good password' }),
      ...others.map((browser, index) =>
        new Promise((resolve) => setTimeout(resolve, index * 40)).then(() => signIn(browser, ann.email)),
      ),
    ])
    assert.equal(changed?.status, 200)
    for (const browser of others) assert.equal((await browser.get('/session')).status, 401)
  })

  test(`${engine}: a password change requires the current one and ends other sessions`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    const other = openBrowser(server.url)
    await signIn(other, ann.email)
    const change = (current: string, password: string) => ann.post('/account/password', { current, password })
    assert.equal((await change('not the password', 'another good password')).status, 403)
    for (const bad of ['short', 'x'.repeat(129), 'password123', 'Qwertyuiop', ann.email]) {
      const { status, json } = await change(PASSWORD, bad)
      assert.equal(status, 400, bad)
      assert.equal(json.details[0].path, '/body/password')
    }
    assert.equal((await other.get('/session')).status, 200)
    assert.equal((await change(PASSWORD, 'another good password')).status, 200)
    assert.equal((await ann.get('/session')).status, 200)
    assert.equal((await other.get('/session')).status, 401)
    assert.equal((await signIn(openBrowser(server.url), ann.email)).status, 401)
    assert.equal((await signIn(openBrowser(server.url), ann.email, 'another good password')).status, 200)
  })
}

test('while PostgreSQL is unreachable, requests with and without a session get 503', async (t) => {
  const { server, relay } = await serveThroughRelay(t)
  const ann = await addMember(server, 'Ann', 'owner')
  relay.cut()
  for (const send of [
    () => ann.get('/session'),
    () => ann.post('/sign-out'),
    () => signIn(openBrowser(server.url), ann.email),
    () => ann.get('/workspaces/acme/keys'),
    () => ann.post('/account/name', { name: 'Anna' }),
  ])
    assert.equal((await send()).status, 503, send.toString())
  relay.mend()
  await until('it responds again', async () => (await ann.get('/session')).status === 200)
})

test('an unknown address and a wrong password get the same response in the same time', async (t) => {
  const server = await serve(t, { engine: 'sqlite', hasCostlyPasswords: true })
  const { email } = await addMember(server, 'Ann', 'owner')
  const attempt = async (address: string) => {
    const startedAt = performance.now()
    const response = await signIn(openBrowser(server.url), address, 'a wrong password')
    return {
      ms: performance.now() - startedAt,
      shape: [response.status, response.text, [...response.headers.keys()].sort().join()],
    }
  }
  await attempt('warm@example.com')
  const [known, unknown] = [[], []] as [number[], number[]]
  for (let round = 0; round < 4; round++) {
    const [a, b] = [await attempt(email), await attempt(`unknown${round}@example.com`)]
    assert.deepEqual(a.shape, b.shape)
    known.push(a.ms)
    unknown.push(b.ms)
  }
  const [knownMs, unknownMs] = [Math.min(...known), Math.min(...unknown)]
  const ratio = knownMs / unknownMs
  assert.ok(ratio > 0.4 && ratio < 2.5, `${knownMs} ms and ${unknownMs} ms`)
})

test('failed attempts are limited per account, and a forged X-Forwarded-For does not help', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { email } = await addMember(server, 'Ann', 'owner')
  const attempt = (password: string, from: string) =>
    openBrowser(server.url).call('POST', '/sign-in', { email, password }, { 'x-forwarded-for': from })
  for (let round = 0; round < 5; round++)
    assert.equal((await attempt('wrong', `192.0.2.${round}`)).status, 401)
  const limited = await attempt(PASSWORD, '192.0.2.99')
  assert.equal(limited.status, 429)
  assert.match(limited.json.message, /Too many attempts\. Try again in [1-5] seconds?\./)
  assert.ok(Number(limited.headers.get('retry-after')) <= 5)
  const other = await addMember(server, 'Bob', 'owner')
  assert.equal((await signIn(openBrowser(server.url), other.email)).status, 200, 'others are not limited')
})

test('failed attempts are limited per network too, also for codes and account confirmations', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const wrong = { current: 'wrong password', password: 'another good password' }
  for (let round = 0; round < 10; round++)
    assert.equal((await ann.post('/account/password', wrong)).status, 403)
  assert.equal((await ann.post('/account/password', wrong)).status, 429)
  const browser = openBrowser(server.url)
  for (let round = 0; round < 20; round++) await browser.post('/sign-in/code', { code: '000000' })
  assert.equal((await browser.post('/sign-in/code', { code: '000000' })).status, 429)
  const statuses = await Promise.all(
    Array.from(
      { length: 51 },
      async (_, index) => (await signIn(browser, `n${index}@example.com`, 'wrong')).status,
    ),
  )
  assert.equal(statuses.filter((status) => status === 429).length, 1)
})

test('email addresses are case-insensitive', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { email } = await addMember(server, 'Ann', 'owner')
  const spellings = [email, email.toUpperCase(), 'Ann@Example.com', 'aNN@example.com', 'ann@EXAMPLE.com']
  for (const spelling of spellings) await signIn(openBrowser(server.url), spelling, 'wrong')
  assert.equal((await signIn(openBrowser(server.url), email)).status, 429)
})

test('the cookie is HttpOnly and SameSite, and with https also Secure with the __Host- prefix', async (t) => {
  const http = await serve(t, { engine: 'sqlite' })
  const plain = await addMember(http, 'Ann', 'owner')
  const sessionCookie = async (browser: TestBrowser, email: string) => {
    await signIn(browser, email)
    return browser.setCookies.find((cookie) => cookie.includes('session_token')) as string
  }
  assert.match(
    await sessionCookie(openBrowser(http.url), plain.email),
    /^adit\.session_token=[\w-]{43}; Max-Age=86400; Path=\/; HttpOnly; SameSite=Lax$/,
  )
  const https = await serve(t, { engine: 'sqlite', env: { ADIT_BASE_URL: 'https://adit.example.com' } })
  const { email } = await addMember(https, 'Ann', 'owner')
  const browser = openBrowser(https.url, 'https://adit.example.com')
  assert.match(
    await sessionCookie(browser, email),
    /^__Host-adit\.session_token=[^;]{43}; Max-Age=86400; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  assert.equal((await browser.get('/session')).status, 200)
  for (const [documented, name] of [
    [plain, 'adit.session_token'],
    [browser, '__Host-adit.session_token'],
  ] as const)
    assert.equal(
      (await documented.get('/openapi.json')).json.components.securitySchemes.credential.name,
      name,
    )
})

test('a write from another origin, without an origin or as a form is rejected', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const write = (headers: Record<string, string>) =>
    ann.call('POST', '/workspaces/acme/keys', '{"label":"forged"}', headers)
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `${server.url}.evil.example` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: '' },
  ])
    assert.equal((await write(headers as Record<string, string>)).status, 403, JSON.stringify(headers))
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
    assert.equal((await write({ 'content-type': type })).status, 400, type)
  assert.equal((await ann.call('POST', '/sign-out', 'x', { 'content-type': 'text/plain' })).status, 400)
  const { keys } = (await ann.get('/workspaces/acme/keys')).json
  assert.ok(!keys.some(({ label }: { label: string }) => label === 'forged'))
  assert.equal((await write({ 'sec-fetch-site': 'same-origin' })).status, 201)
})

test('sessions, links and TOTP secrets are stored hashed or encrypted', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const { link } = (
    await ann.post('/workspaces/acme/invitations', { email: 'bob@example.com', role: 'member' })
  ).json
  const { secret, recoveryCodes } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
  const { db } = server.services.store
  const dump = JSON.stringify(
    await Promise.all(
      (
        ['users', 'identities', 'sessions', 'verifications', 'two_factors', 'links', 'audit_log'] as const
      ).map((table) => db.selectFrom(table).selectAll().execute()),
    ),
  )
  for (const raw of [
    ann.cookies.get('adit.session_token'),
    link.split('#')[1],
    secret,
    recoveryCodes[0],
    PASSWORD,
  ])
    assert.ok(raw && !dump.includes(raw), `${raw} is in the database`)
})
