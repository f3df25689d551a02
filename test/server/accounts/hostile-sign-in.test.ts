// Attacks on sign-in: forged cookies, cookies of others, concurrent uses of a code, and long inputs.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import { generateCode } from '../../support/accounts/authenticator.ts'
import { addMember, openBrowser, PASSWORD, signIn, type TestBrowser } from '../../support/accounts/users.ts'
import { serve, type TestServer } from '../../support/api/server.ts'
import { type Engine, engines } from '../../support/databases/create.ts'

/** Codes change every 30 seconds: with the real clock, a slow test could send one of an earlier step. */
const NOW = Date.now()
const serveAtNow = (t: TestContext, engine: Engine) => serve(t, { engine, clock: () => NOW })
const codeAtNow = (secret: string, steps = 0) => generateCode(secret, steps, NOW)

const SESSION = 'adit.session_token'
const CHALLENGE = 'adit.two_factor'

const findCookie = (browser: Pick<TestBrowser, 'cookies'>, name: string) =>
  browser.cookies.get(name) as string

/** The status of a request with this one cookie. */
async function statusWith(server: TestServer, name: string, value: string): Promise<number> {
  const browser = openBrowser(server.url)
  browser.cookies.set(name, value)
  return (await browser.get('/session')).status
}

/** A member with two-factor authentication. */
async function addProtected(server: TestServer, now = NOW) {
  const ann = await addMember(server, 'Ann', 'owner')
  const { secret, recoveryCodes } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
  const confirmed = await ann.post('/account/two-factor/confirm', { code: generateCode(secret, -1, now) })
  assert.equal(confirmed.status, 200)
  /** Returns a browser that has sent the password, but no code yet. */
  const begin = async () => {
    const browser = openBrowser(server.url)
    assert.deepEqual((await signIn(browser, ann.email)).json, { next: 'code' })
    return browser
  }
  return { ...ann, secret, recoveryCodes: recoveryCodes as string[], begin }
}

const sendCode = (browser: TestBrowser, code: string) => browser.post('/sign-in/code', { code })

const count = (statuses: number[], status: number) => statuses.filter((each) => each === status).length

test('a session token that was changed, shortened, guessed or taken from the database is rejected', async (t) => {
  const server = await serveAtNow(t, 'sqlite')
  const ann = await addMember(server, 'Ann', 'owner')
  const token = findCookie(ann, SESSION)
  assert.match(token, /^[\w-]{43}$/)
  assert.equal(await statusWith(server, SESSION, token), 200)
  const [row] = await server.services.store.db.selectFrom('sessions').selectAll().execute()
  const last = token.at(-1) === 'A' ? 'B' : 'A'
  const forged = [
    '',
    token.slice(0, 42),
    token.slice(0, 8),
    `${token}A`,
    `${token}=`,
    `"${token}"`,
    `${token.slice(0, -1)}${last}`,
    `${token[0] === 'x' ? 'y' : 'x'}${token.slice(1)}`,
    token.toLowerCase(),
    `${token}.${token}`,
    row?.id ?? '',
    row?.token ?? '',
    (row?.token ?? '').slice(0, 43),
    Buffer.from(row?.token ?? '', 'hex').toString('base64url'),
    '%00',
    '_'.repeat(43),
    "' or 1=1 --",
    'x'.repeat(8_000),
  ]
  for (const value of forged) assert.equal(await statusWith(server, SESSION, value), 401, value)
})

test('a session that is inserted into the database is not accepted', async (t) => {
  const server = await serveAtNow(t, 'sqlite')
  const ann = await addMember(server, 'Ann', 'owner')
  const token = 'a'.repeat(43)
  await server.services.store.transaction(async (db) => {
    const row = await db.selectFrom('sessions').selectAll().executeTakeFirstOrThrow()
    await db
      .insertInto('sessions')
      .values({ ...row, id: 'ses_forged', token: hashSecret(token) })
      .execute()
  })
  assert.equal(await statusWith(server, SESSION, token), 401)
  assert.equal((await ann.get('/session')).status, 200)
})

test('session ids change with each sign-in and with two-factor authentication, and old ones end', async (t) => {
  const server = await serveAtNow(t, 'sqlite')
  const ann = await addMember(server, 'Ann', 'owner')
  const tokens = [findCookie(ann, SESSION)]
  await signIn(ann.browser, ann.email)
  tokens.push(findCookie(ann, SESSION))
  const { secret } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
  await ann.post('/account/two-factor/confirm', { code: codeAtNow(secret) })
  tokens.push(findCookie(ann, SESSION))
  assert.equal((await ann.post('/account/two-factor/disable', { password: PASSWORD })).status, 200)
  assert.equal(new Set([...tokens, findCookie(ann, SESSION)]).size, 4)
  for (const token of tokens) assert.equal(await statusWith(server, SESSION, token), 401)
  assert.equal((await ann.get('/session')).status, 200)
})

test('the cookie between password and code is no session, belongs to its user, and works once', async (t) => {
  const server = await serveAtNow(t, 'sqlite')
  const ann = await addProtected(server)
  const browser = await ann.begin()
  const challenge = findCookie(browser, CHALLENGE)
  assert.match(challenge, /^[\w-]{43}$/)
  assert.equal(await statusWith(server, SESSION, challenge), 401)
  const bob = await addMember(server, 'Bob', 'owner')
  for (const value of [
    findCookie(bob, SESSION),
    challenge.slice(0, 42),
    `${challenge}A`,
    challenge.toLowerCase(),
    hashSecret(challenge),
    'x'.repeat(8_000),
  ]) {
    bob.cookies.set(CHALLENGE, value)
    assert.equal((await sendCode(bob.browser, codeAtNow(ann.secret))).status, 401, value)
  }
  assert.equal((await sendCode(browser, codeAtNow(ann.secret))).status, 200)
  assert.equal(browser.cookies.has(CHALLENGE), false, 'the cookie is cleared')
  const again = openBrowser(server.url)
  again.cookies.set(CHALLENGE, challenge)
  assert.equal((await sendCode(again, codeAtNow(ann.secret, 1))).status, 401)
})

for (const engine of engines) {
  test(`${engine}: of concurrent uses of a code, one signs in`, async (t) => {
    const server = await serveAtNow(t, engine)
    const ann = await addProtected(server)
    const race = async (code: string) => {
      const browsers = await Promise.all(Array.from({ length: 4 }, ann.begin))
      const responses = await Promise.all(browsers.map((browser) => sendCode(browser, code)))
      const statuses = responses.map(({ status }) => status)
      assert.deepEqual([count(statuses, 200), count(statuses, 401)], [1, 3], `${code}: ${statuses}`)
    }
    await race(ann.recoveryCodes[0] as string)
    await race(codeAtNow(ann.secret))
  })

  test(`${engine}: of concurrent codes for one password, one signs in`, async (t) => {
    const server = await serveAtNow(t, engine)
    const ann = await addProtected(server)
    const browser = await ann.begin()
    const challenge = findCookie(browser, CHALLENGE)
    const codes = [codeAtNow(ann.secret), codeAtNow(ann.secret, 1), ...ann.recoveryCodes.slice(0, 2)]
    const statuses = await Promise.all(
      codes.map(async (code) => {
        const each = openBrowser(server.url)
        each.cookies.set(CHALLENGE, challenge)
        return (await sendCode(each, code)).status
      }),
    )
    assert.deepEqual([count(statuses, 200), count(statuses, 401)], [1, 3], String(statuses))
    const { sessions } = (await ann.get('/account/sessions')).json
    assert.equal(sessions.length, 2)
  })

  test(`${engine}: wrong codes that are sent at the same time are all counted`, async (t) => {
    const server = await serveAtNow(t, engine)
    const ann = await addProtected(server)
    const browser = await ann.begin()
    await Promise.all(Array.from({ length: 8 }, (_, index) => sendCode(browser, `00000${index}`)))
    assert.equal((await sendCode(browser, codeAtNow(ann.secret))).status, 401)
    const row = await server.services.store.db.selectFrom('two_factors').selectAll().executeTakeFirstOrThrow()
    assert.equal(row.failed_codes, 5, 'after five, the codes are not looked at')
    assert.equal((await sendCode(await ann.begin(), codeAtNow(ann.secret))).status, 200)
  })
}

test('a recovery code works once, only as it was shown, and not after others were created', async (t) => {
  const server = await serveAtNow(t, 'sqlite')
  const ann = await addProtected(server)
  const [first = '', second = '', third = ''] = ann.recoveryCodes
  assert.equal(new Set(ann.recoveryCodes).size, 10)
  for (const wrong of [
    first.replace('-', ''),
    first.slice(0, -1),
    `${first}-`,
    second.split('').reverse().join(''),
  ])
    assert.equal((await sendCode(await ann.begin(), wrong)).status, 401, wrong)
  const signedIn = await ann.begin()
  assert.equal((await sendCode(signedIn, ` ${first} `)).status, 200)
  assert.equal((await sendCode(await ann.begin(), first)).status, 401)
  assert.equal((await sendCode(await ann.begin(), second)).status, 200)
  await signedIn.post('/account/two-factor/disable', { password: PASSWORD })
  const { secret } = (await signedIn.post('/account/two-factor', { password: PASSWORD })).json
  assert.equal((await signedIn.post('/account/two-factor/confirm', { code: codeAtNow(secret) })).status, 200)
  assert.equal((await sendCode(await ann.begin(), third)).status, 401)
})

test('codes follow the clock of the server, and a lock that a wrong clock has set ends', async (t) => {
  const clock = { now: Date.now() }
  const server = await serve(t, { engine: 'sqlite', clock: () => clock.now })
  const ann = await addProtected(server, clock.now)
  const attempt = async (code: string) => (await sendCode(await ann.begin(), code)).status
  for (const step of [-3, -2, 2, 3])
    assert.equal(await attempt(generateCode(ann.secret, step, clock.now)), 401)
  assert.equal(await attempt(generateCode(ann.secret, 1, clock.now)), 200)
  clock.now += 400 * 86_400_000
  for (let round = 0; round < 10; round++) await attempt('000000')
  assert.equal(await attempt(generateCode(ann.secret, 0, clock.now)), 401, 'locked')
  clock.now += 15 * 60_000
  assert.equal(await attempt(generateCode(ann.secret, 0, clock.now)), 200, 'for 15 minutes')
  for (let round = 0; round < 10; round++) await attempt('000000')
  clock.now -= 400 * 86_400_000
  assert.equal(await attempt(generateCode(ann.secret, 0, clock.now)), 200, 'not for a year')
})

test('long and odd inputs of sign-in are rejected, and not counted as wrong codes', async (t) => {
  const server = await serveAtNow(t, 'sqlite')
  const ann = await addProtected(server)
  const browser = await ann.begin()
  const status = async (path: string, body: unknown) =>
    (await openBrowser(server.url).post(path, body)).status
  const email = ann.email
  for (const body of [
    { email, password: 'x'.repeat(1_001) },
    { email: `${'a'.repeat(300)}@example.com`, password: PASSWORD },
    { email: [email], password: PASSWORD },
    { email, password: { length: 8 } },
    { email, password: null },
    { email },
  ])
    assert.equal(await status('/sign-in', body), 400, JSON.stringify(body).slice(0, 80))
  for (const password of ['', 'x'.repeat(1_000), `${PASSWORD}\u0000`, '\ud800', PASSWORD.repeat(30)])
    assert.ok([400, 401].includes(await status('/sign-in', { email, password })), password.slice(0, 20))
  for (const code of ['', '1'.repeat(21), '00000\u0660', "' or 1=1 --", { code: 1 }, ['000000'], 123_456])
    assert.equal((await browser.post('/sign-in/code', { code })).status, 400, String(code))
  assert.equal((await sendCode(browser, codeAtNow(ann.secret))).status, 200, 'none of them was counted')
})
