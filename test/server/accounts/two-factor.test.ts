// Two-factor authentication: setup, sign-in, and protection against reuse.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateCode } from '../../support/accounts/authenticator.ts'
import { addMember, openBrowser, PASSWORD, serveWithOwner, signIn } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import { createDatabase, engines } from '../../support/databases/create.ts'
import { run, startServing } from '../../support/processes/process.ts'

for (const engine of engines)
  test(`${engine}: two-factor authentication is enforced, and no code works twice`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine })
    assert.equal((await ann.post('/account/two-factor', { password: 'wrong password' })).status, 403)
    const begun = await ann.post('/account/two-factor', { password: PASSWORD })
    assert.equal(begun.status, 200)
    assert.equal(begun.headers.get('cache-control'), 'no-store')
    const { secret, uri, recoveryCodes } = begun.json
    assert.ok(uri.startsWith('otpauth://totp/') && uri.includes(secret))
    assert.deepEqual((await signIn(openBrowser(server.url), ann.email)).json, { next: 'signed_in' })
    assert.equal((await ann.post('/account/two-factor/confirm', { code: '000000' })).status, 403)
    const other = openBrowser(server.url)
    await signIn(other, ann.email)
    const misdirected = await ann.post('/sign-in/code', { code: generateCode(secret, -1) })
    assert.equal(misdirected.status, 401, 'a session cannot confirm it by signing in')
    assert.equal((await ann.get('/session')).json.user.hasTwoFactor, false)
    const confirming = generateCode(secret)
    assert.equal((await ann.post('/account/two-factor/confirm', { code: confirming })).status, 200)
    assert.equal((await ann.get('/session')).json.user.hasTwoFactor, true)
    assert.equal((await other.get('/session')).status, 401, 'other sessions end')
    assert.equal((await ann.post('/account/two-factor', { password: PASSWORD })).status, 409)

    const begin = async () => {
      const browser = openBrowser(server.url)
      assert.deepEqual((await signIn(browser, ann.email)).json, { next: 'code' })
      assert.equal((await browser.get('/session')).status, 401, 'the password alone is not enough')
      return browser
    }
    const first = await begin()
    assert.equal((await first.post('/sign-in/code', { code: '000000' })).status, 401)
    assert.equal(
      (await first.post('/sign-in/code', { code: confirming })).status,
      401,
      'it was used to set it up',
    )
    const code = generateCode(secret, 1)
    assert.deepEqual((await first.post('/sign-in/code', { code })).json, { next: 'signed_in' })
    assert.equal((await first.get('/session')).status, 200)
    const second = await begin()
    const replayed = await second.post('/sign-in/code', { code })
    assert.equal(replayed.status, 401, 'a code works once')
    assert.equal((await second.get('/session')).status, 401)

    const third = await begin()
    assert.equal((await third.post('/sign-in/code', { code: recoveryCodes[0] })).status, 200)
    const fourth = await begin()
    assert.equal((await fourth.post('/sign-in/code', { code: recoveryCodes[0] })).status, 401, 'works once')
    assert.equal(
      (await openBrowser(server.url).post('/sign-in/code', { code: generateCode(secret, -1) })).status,
      401,
    )

    assert.equal(
      (await first.post('/account/two-factor/disable', { password: 'wrong password' })).status,
      403,
    )
    assert.equal((await first.post('/account/two-factor/disable', { password: PASSWORD })).status, 200)
    assert.deepEqual((await signIn(openBrowser(server.url), ann.email)).json, { next: 'signed_in' })
    const acts = await server.services.store.db.selectFrom('audit_log').select('action').execute()
    for (const action of ['user.two-factor-enabled', 'user.two-factor-disabled'])
      assert.ok(acts.some((row) => row.action === action))
  })

test('wrong codes are counted per account, across networks and new sign-ins', async (t) => {
  const { server, ann } = await serveWithOwner(t, {
    engine: 'sqlite',
    env: { ADIT_TRUSTED_PROXIES: '127.0.0.1' },
  })
  const { secret, recoveryCodes } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
  await ann.post('/account/two-factor/confirm', { code: generateCode(secret) })
  const signInWithCode = async (code: string, from: string) => {
    const browser = openBrowser(server.url)
    const headers = { 'x-forwarded-for': from }
    const credentials = { email: ann.email, password: PASSWORD }
    assert.deepEqual((await browser.call('POST', '/sign-in', credentials, headers)).json, { next: 'code' })
    return (await browser.call('POST', '/sign-in/code', { code }, headers)).status
  }
  for (let round = 0; round < 10; round++)
    assert.equal(await signInWithCode(round % 2 ? '000000' : 'abcde-00000', `192.0.2.${round}`), 401)
  assert.equal(await signInWithCode(generateCode(secret, 1), '198.51.100.1'), 401, 'even the right one')
  assert.equal(await signInWithCode(recoveryCodes[0], '198.51.100.2'), 401)
})

test('with another ADIT_SECRET two-factor authentication fails until the operator resets it', async (t) => {
  const database = await createDatabase(t, 'sqlite')
  const first = await serve(t, {
    engine: 'sqlite',
    env: { ADIT_DATABASE_URL: database },
    hasCostlyPasswords: true,
  })
  const ann = await addMember(first, 'Ann', 'owner')
  const { secret } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
  await ann.post('/account/two-factor/confirm', { code: generateCode(secret) })
  const env = { ADIT_DATABASE_URL: database, ADIT_SECRET: 'another secret, at least thirty-two characters' }
  const serving = await startServing(t, { ...env, ADIT_LOG_LEVEL: 'error' })
  const browser = openBrowser(serving.url)
  assert.deepEqual((await signIn(browser, ann.email)).json, { next: 'code' })
  const { status, json } = await browser.post('/sign-in/code', { code: generateCode(secret, 1) })
  assert.equal(status, 401)
  assert.match(json.message, /Ask the operator/)
  await serving.waitFor(/was ADIT_SECRET changed/, 'stderr')
  await run(t, ['admin', 'user', 'reset', ann.email, '--two-factor'], env)
  assert.deepEqual((await signIn(openBrowser(serving.url), ann.email)).json, { next: 'signed_in' })
})

for (const engine of engines)
  test(`${engine}: a clock that is ahead for a while does not let a code work twice`, async (t) => {
    const clock = { now: Date.now() }
    const { server, ann } = await serveWithOwner(t, { engine, clock: () => clock.now })
    const { secret } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
    const confirm = await ann.post('/account/two-factor/confirm', { code: generateCode(secret, -1) })
    assert.equal(confirm.status, 200)
    const signInWith = async (code: string) => {
      const browser = openBrowser(server.url)
      assert.deepEqual((await signIn(browser, ann.email)).json, { next: 'code' })
      return (await browser.post('/sign-in/code', { code })).status
    }
    const code = generateCode(secret)
    assert.equal(await signInWith(code), 200)
    clock.now += 20 * 3_600_000
    assert.equal(await signInWith(generateCode(secret, 0, clock.now)), 200)
    clock.now -= 20 * 3_600_000
    assert.equal(await signInWith(code), 401)
  })
