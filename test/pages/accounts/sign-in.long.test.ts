// Pages that do not require a session: sign-in, links and unknown paths.
import assert from 'node:assert/strict'
import { startHostileProvider } from '../../support/accounts/hostile-provider.ts'
import { linkFor, PASSWORD, serveWithOwner } from '../../support/accounts/users.ts'
import { serve } from '../../support/api/server.ts'
import { openBrowser, test } from '../../support/browser.ts'
import {
  button,
  checkEveryView,
  checkPage,
  DESKTOP,
  field,
  openPage,
  PHONE,
  signInAs,
  toast,
  visit,
} from '../support/harness.ts'

test('the sign-in page says what to do after single sign-on was rejected', async (t) => {
  const browser = await openBrowser(t)
  const server = await serve(t, { engine: 'sqlite' })
  const context = await browser.newContext({ viewport: PHONE })
  const { page } = await openPage(t, context)
  for (const [error, text] of [
    ['not_invited', /Ask an owner of your workspace for an invitation/],
    ['email_unverified', /has not verified your email address.* open your invitation link/],
    ['account_exists', /Sign in with its password\. If it has none, ask your server admin for a link/],
    ['wrong_email', /Your invitation is for another email address/],
    ['invalid_invitation', /This invitation has expired or was already used/],
    ['disabled', /disabled\. Contact your server admin/],
    ['failed', /Try again, or contact your server admin/],
  ] as const) {
    await page.goto(`${server.url}/sign-in?error=${error}`)
    assert.match((await page.getByRole('alert').textContent()) ?? '', text)
    await page.waitForLoadState('networkidle')
    await checkPage(page, `sign-in-${error}`, '360-light')
  }
})

test('/sign-in redirects users who are signed in, and shows the form after they sign out', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const page = await visit(t, server, ann, '/sign-in')
  await page.waitForURL(`${server.url}/w/acme`)
  await page.getByRole('heading', { level: 1, name: 'Acme' }).waitFor()

  await button(page, 'Account menu: Ann').click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await toast(page, 'Signed out.').waitFor()
  await field(page, 'Email').fill(ann.email)
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Sign in').click()
  await page.waitForURL(`${server.url}/w/acme`)
})

test('an expired session leads to sign-in with the reason, and back to the page', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const page = await visit(t, server, ann, '/w/acme/members')
  await page.getByText(ann.email).waitFor()
  await ann.post('/sign-out')
  await page.getByRole('navigation').getByRole('link', { name: 'Audit log' }).click()
  await page.getByText('Your session has ended').waitFor()
  await field(page, 'Email').fill(ann.email)
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Sign in').click()
  await page.getByRole('heading', { level: 1, name: 'Audit log' }).waitFor()
})

test('unknown paths show the not-found page, signed in or not', async (t) => {
  const browser = await openBrowser(t)
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const context = await browser.newContext({ viewport: DESKTOP })
  const { page } = await openPage(t, context)
  const notFound = page.getByRole('heading', { level: 1, name: 'Page not found' })
  await page.goto(`${server.url}/w/acme/nowhere`)
  await notFound.waitFor()
  assert.equal(await page.getByRole('navigation').count(), 0)
  await checkEveryView(page, 'not-found-signed-out')
  await page.getByRole('link', { name: 'Go to overview' }).click()
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()

  await signInAs(context, server.url, ann)
  await page.goto(`${server.url}/w/acme/nowhere`)
  await notFound.waitFor()
  await page.getByRole('link', { name: 'Go to overview' }).click()
  await page.getByRole('heading', { level: 1, name: 'Acme' }).waitFor()
})

test('an invitation offers single sign-on, which begins with the invited address', async (t) => {
  const browser = await openBrowser(t)
  const provider = await startHostileProvider(t)
  const server = await serve(t, { engine: 'sqlite', env: provider.env })
  const link = await linkFor(server, 'bob@example.com', 'member')
  const context = await browser.newContext({ viewport: DESKTOP })
  const { page } = await openPage(t, context)
  await page.goto(`${server.url}/link#${link}`)
  const sso = button(page, `Continue with ${new URL(provider.issuer).host}`)
  await sso.waitFor()
  await checkEveryView(page, 'link-sso')
  const authorization = page.waitForRequest(`${provider.issuer}/authorize?**`)
  await sso.click()
  assert.equal(new URL((await authorization).url()).searchParams.get('login_hint'), 'bob@example.com')
})

test('an invitation link creates an account once, and says so when it is opened again', async (t) => {
  const browser = await openBrowser(t)
  const server = await serve(t, { engine: 'sqlite' })
  const link = `${server.url}/link#${await linkFor(server, 'bob@example.com', 'admin')}`
  const context = await browser.newContext({ viewport: DESKTOP })
  const { page } = await openPage(t, context)
  await page.goto(link)
  await page.getByRole('heading', { level: 1, name: 'Join Acme' }).waitFor()
  await page.getByText('You are invited as an admin. You will sign in with bob@example.com.').waitFor()
  await checkPage(page, 'link-join', '1280-light')
  await field(page, 'Name').fill('Bob')
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Create account').click()
  await toast(page, 'You joined Acme.').waitFor()

  await page.goto(`${server.url}/account`)
  await page.goto(link)
  await page
    .getByRole('heading', { level: 1, name: 'This link is invalid, expired or already used' })
    .waitFor()
})
