// Throttling of password and code guesses, without locking out the owner of an account.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '../../../src/server/domain/fault.ts'
import type { AttemptLimits } from '../../../src/server/http/limits/attempt-counts.ts'
import { createCounters } from '../../../src/server/http/limits/counters.ts'
import { createLoginThrottle } from '../../../src/server/http/limits/login-throttle.ts'
import { perAccount, perMail, perNetwork } from '../../../src/server/http/limits/sign-in-limits.ts'
import { addMember, openBrowser, PASSWORD, serveWithOwner, signIn } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'

const KNOWN = 'adit.known_browser'
const behindProxy = { ADIT_TRUSTED_PROXIES: '127.0.0.1' }

async function setUp(t: Parameters<typeof serve>[0]) {
  const clock = { now: Date.now() }
  const { server, ann } = await serveWithOwner(t, {
    engine: 'sqlite',
    env: behindProxy,
    clock: () => clock.now,
  })
  let networks = 0
  /** From a new network each time. */
  const tryAs = (browser: ReturnType<typeof openBrowser>, password: string) =>
    browser.call(
      'POST',
      '/sign-in',
      { email: ann.email, password },
      { 'x-forwarded-for': `192.0.2.${++networks}` },
    )
  const asStranger = (password: string) => tryAs(openBrowser(server.url), password)
  return { server, clock, ann, tryAs, asStranger }
}

test('guessing a password is delayed up to a minute, and does not lock out the owner', async (t) => {
  const { server, clock, ann, tryAs, asStranger } = await setUp(t)
  await ann.post('/sign-out')
  for (let round = 0; round < 10; round++) assert.equal((await asStranger('wrong')).status, 401)
  const waits = []
  for (let round = 0; round < 6; round++) {
    const rejected = await asStranger(PASSWORD)
    assert.equal(rejected.status, 429, 'the password does not matter, so nothing is revealed')
    const wait = Number(rejected.headers.get('retry-after'))
    assert.match(rejected.json.message, new RegExp(`Try again in ${wait} seconds`))
    waits.push(wait)
    assert.equal(
      (await tryAs(ann.browser, 'wrong')).status,
      401,
      'a browser that signed in before is not held up',
    )
    clock.now += wait * 1000
    assert.equal((await asStranger('wrong')).status, 401)
  }
  assert.deepEqual(waits, [5, 10, 20, 40, 60, 60])
  assert.equal((await asStranger(PASSWORD)).status, 429)
  assert.equal((await tryAs(ann.browser, PASSWORD)).status, 200, 'the owner, meanwhile')
  clock.now += 60_000
  assert.equal((await asStranger(PASSWORD)).status, 200, 'the owner at a new browser, a minute later')
  assert.equal((await signIn(openBrowser(server.url), 'bob@example.com', 'wrong')).status, 401)
})

test('concurrent attempts count like sequential ones', async (t) => {
  const { server, ann } = await setUp(t)
  const statuses = await Promise.all(
    Array.from(
      { length: 20 },
      async () => (await signIn(openBrowser(server.url), ann.email, 'wrong')).status,
    ),
  )
  assert.equal(statuses.filter((status) => status === 401).length, 5)
  assert.equal(statuses.filter((status) => status === 429).length, 15)
})

test('a known browser is trusted for its account only, and throttled separately', async (t) => {
  const { server, ann, tryAs, asStranger } = await setUp(t)
  const bob = await addMember(server, 'Bob', 'owner')
  const value = ann.cookies.get(KNOWN) as string
  const second = openBrowser(server.url)
  await signIn(second, ann.email)
  assert.match(value, /^[\w-]{22}\.[\w-]{43}$/)
  for (let round = 0; round < 10; round++) await asStranger('wrong')
  const as = async (cookie: string) => {
    const browser = openBrowser(server.url)
    browser.cookies.set(KNOWN, cookie)
    return (await tryAs(browser, 'wrong')).status
  }
  assert.equal(await as(value), 401)
  const forged = value.replace(/\.../, value.includes('.AA') ? '.BB' : '.AA')
  for (const cookie of [
    bob.cookies.get(KNOWN) as string,
    forged,
    '',
    'x',
    '~'.repeat(500),
    `${'~'.repeat(9)}${value}`,
  ])
    assert.equal(await as(cookie), cookie.endsWith(value) ? 401 : 429, cookie)
  for (let round = 0; round < 8; round++) assert.equal(await as(value), 401)
  assert.equal(await as(value), 429, 'ten failures of its own')
  assert.equal(await as(second.cookies.get(KNOWN) as string), 401, 'another one has not failed')
  assert.equal(
    (await ann.post('/account/password', { current: PASSWORD, password: 'another good password' })).status,
    200,
  )
  assert.equal(await as(second.cookies.get(KNOWN) as string), 429, 'not known with another password')
})

test('a browser can be known for several accounts, with a cookie like that of sessions', async (t) => {
  const { server, ann, asStranger, tryAs } = await setUp(t)
  const bob = await addMember(server, 'Bob', 'owner')
  assert.equal((await signIn(ann.browser, bob.email)).status, 200)
  assert.equal(ann.cookies.get(KNOWN)?.split('~').length, 2)
  assert.equal((await signIn(ann.browser, bob.email)).status, 200)
  assert.equal(ann.cookies.get(KNOWN)?.split('~').length, 2, 'it is known already')
  for (let round = 0; round < 10; round++) await asStranger('wrong')
  assert.equal((await asStranger(PASSWORD)).status, 429)
  assert.equal((await tryAs(ann.browser, PASSWORD)).status, 200)
  const https = await serve(t, { engine: 'sqlite', env: { ADIT_BASE_URL: 'https://adit.example.com' } })
  const { email } = await addMember(https, 'Ann', 'owner')
  const browser = openBrowser(https.url, 'https://adit.example.com')
  await signIn(browser, email)
  const cookie = browser.setCookies.find((one) => one.includes('known_browser')) as string
  assert.match(
    cookie,
    /^__Host-adit\.known_browser=[^;]+; Max-Age=31536000; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
})

test('a flood of other names does not reset a counter', () => {
  const { consume } = createLoginThrottle(createCounters(() => 0))
  const limits = (name: string, max = 10) => [{ ...signInTo(name), max }]
  for (let round = 0; round < 10; round++) consume(limits('ann'))
  for (let index = 0; index < 60_000; index++) consume(limits(`n${index}`, 1e9))
  assert.throws(() => consume(limits('ann')), /Too many attempts/)
})

const signInTo = (name: string) => ({ kind: 'sign-in-account', name, max: 3, onExceed: 'delay' }) as const

function createCheck() {
  const { consume } = createLoginThrottle(createCounters(() => 0))
  return (limits: AttemptLimits) => {
    try {
      consume(limits)
      return true
    } catch {
      return false
    }
  }
}

test('a flood from one IPv6 /32 is limited as a whole, and blocks no other network or account', () => {
  const isAllowed = createCheck()
  let allowed = 0
  for (let index = 0; index < 40_000; index++) {
    const [site, subnet] = [(index >> 7).toString(16), (index >> 5) & 3]
    if (isAllowed(perMail(`x${index}@example.com`, `2001:db8:${site}:${subnet}::1`))) allowed += 1
  }
  assert.equal(allowed, 20 * 64)
  const users = Array.from({ length: 1_000 }, (_, index) => ({
    email: `u${index}@example.org`,
    address: `198.51.${100 + (index >> 8)}.${index & 255}`,
  }))
  const blocked = {
    mail: users.filter(({ email, address }) => !isAllowed(perMail(email, address))).length,
    account: users.filter(({ email }) => !isAllowed(perAccount(email))).length,
    signIn: users.filter(
      ({ email, address }) => !isAllowed([signInTo(email), ...perNetwork('sign-in', address, 50)]),
    ).length,
  }
  assert.deepEqual(blocked, { mail: 0, account: 0, signIn: 0 })
})

test('requests for mail from 40,000 networks do not use up the limits of other users', () => {
  const isAllowed = createCheck()
  for (let index = 0; index < 40_000; index++)
    isAllowed(perMail(`x${index}@example.com`, `203.0.${index >> 8}.${index & 255}`))
  const blocked = { mail: 0, account: 0 }
  for (let index = 0; index < 1_000; index++) {
    const address = `198.51.${100 + (index >> 8)}.${index & 255}`
    if (!isAllowed(perMail(`u${index}@example.org`, address))) blocked.mail += 1
    if (!isAllowed(perAccount(`user${index}`))) blocked.account += 1
  }
  assert.ok(blocked.mail <= 2, `one in 70,000 is expected, and ${blocked.mail} of 1,000 were blocked`)
  assert.equal(blocked.account, 0)
})

test('a successful sign-in neither prolongs the window of failures nor delays the next', async () => {
  const clock = { now: 1e12 }
  const { attempt } = createLoginThrottle(createCounters(() => clock.now))
  const limits = [signInTo('ann')]
  const fail = () =>
    assert.rejects(
      attempt(limits, async () => {
        throw new Fault('unauthorized')
      }),
      { code: 'unauthorized' },
    )
  for (let round = 0; round < 3; round++) await fail()
  await assert.rejects(
    attempt(limits, async () => 'signed in'),
    { code: 'rate_limited' },
  )
  clock.now += 10 * 60_000
  for (let round = 0; round < 3; round++)
    assert.equal(await attempt(limits, async () => 'signed in'), 'signed in')
  await fail()
  await assert.rejects(
    attempt(limits, async () => 'signed in'),
    { code: 'rate_limited' },
    'the failures are still counted',
  )
  clock.now += 14 * 60_000
  assert.equal(await attempt(limits, async () => 'signed in'), 'signed in')
  clock.now += 60_000
  for (let round = 0; round < 3; round++) await fail()
})
