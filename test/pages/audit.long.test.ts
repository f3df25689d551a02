// The text of audit log entries.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DAY_MS } from '../../src/lib/time.ts'
import { generateCode } from '../support/accounts/authenticator.ts'
import { startHostileProvider } from '../support/accounts/hostile-provider.ts'
import {
  addMember,
  openBrowser as openApiClient,
  PASSWORD,
  serveWithOwner,
  signIn,
} from '../support/accounts/users.ts'
import { serve, type TestServer } from '../support/api/server.ts'
import { test } from '../support/browser.ts'
import { checkPage, openPageAs } from './support/harness.ts'

/** Ann uses every sign-in method, fails with some, and changes her credentials. */
async function signInWithEveryMethod(server: TestServer) {
  const ann = await addMember(server, 'Ann', 'owner')
  const newClient = () => openApiClient(server.url)
  for (let guesses = 0; guesses < 3; guesses += 1) await signIn(newClient(), ann.email, 'a guess')
  await ann.post('/account/two-factor', { password: 'a guess' })
  const { secret, recoveryCodes } = (await ann.post('/account/two-factor', { password: PASSWORD })).json
  await ann.post('/account/two-factor/confirm', { code: generateCode(secret) })
  for (const codes of [['000000', generateCode(secret, 1)], [recoveryCodes[0]]]) {
    const client = newClient()
    await signIn(client, ann.email)
    for (const code of codes) await client.post('/sign-in/code', { code })
    await client.post('/sign-out')
  }
  await ann.post('/account/two-factor/disable', { password: PASSWORD })
  await ann.post('/account/password', { current: PASSWORD, password: 'another good password' })
  await ann.post('/account/name', { name: 'Ann Example' })
  return ann
}

test('the audit log describes every sign-in action, on desktop and phone', async (t) => {
  const provider = await startHostileProvider(t)
  const env = { ...provider.env, ADIT_OIDC_LINK_BY_EMAIL: 'true' }
  const server = await serve(t, { engine: 'sqlite', env })
  const ann = await signInWithEveryMethod(server)
  await provider.signIn(openApiClient(server.url), 'ann')
  await provider.signIn(openApiClient(server.url), 'ann', { claims: { sub: 'another subject' } })
  const { page } = await openPageAs(t, server.url, ann)
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 740 })
    await page.goto(`${server.url}/w/acme/audit`)
    await page.getByText('linked their account').waitFor()
    const text = (await page.getByRole('main').innerText()).replaceAll(/\s+/g, ' ')
    for (const entry of [
      'Failed sign-in as Ann Example (not linked to the identity provider) from 127.0.0.1',
      'Ann Example signed in with the identity provider from 127.0.0.1',
      'Ann Example linked their account to the identity provider',
      'Ann changed their name',
      'Ann changed their password',
      'Ann turned off two-factor authentication',
      'Ann signed out',
      'Ann signed in with a password and a recovery code',
      'Ann signed in with a password and a code from 127.0.0.1',
      'Failed sign-in as Ann (wrong code) from 127.0.0.1',
      'Ann turned on two-factor authentication',
      'Ann started setting up two-factor authentication',
      'Ann failed to confirm their identity (wrong password)',
      'Failed sign-in as Ann (wrong password, 3 times) from 127.0.0.1',
      'Ann signed in with a password from 127.0.0.1',
    ])
      assert.ok(text.includes(entry), `"${entry}" is missing in: ${text}`)
    assert.doesNotMatch(text, /(user|member)\.[a-z]/, 'an action without a description')
    await checkPage(page, 'audit-sign-ins', `${width}-light`)
  }
})

test('the audit log is filtered and exported, on desktop and phone', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const bob = await addMember(server, 'Bob', 'admin')
  const expiresAt = `${new Date(Date.now() + 30 * DAY_MS).toISOString().slice(0, 10)}T00:00:00.000Z`
  assert.equal((await ann.post('/workspaces/acme/keys', { label: 'of Ann', expiresAt })).status, 201)
  await bob.post('/workspaces/acme/keys', { label: 'of Bob' })
  await bob.post('/account/name', { name: 'Robert' })
  await ann.post('/workspaces/acme/policy', { keyDaysMax: 90 })
  const { page } = await openPageAs(t, server.url, ann)
  const entries = page.getByRole('main').getByRole('listitem')
  for (const [width, scheme] of [
    [1280, 'light'],
    [360, 'dark'],
  ] as const) {
    await page.setViewportSize({ width, height: 740 })
    await page.emulateMedia({ colorScheme: scheme })
    await page.goto(`${server.url}/w/acme/audit`)
    await entries.filter({ hasText: 'created API key “of Ann”' }).waitFor()
    const main = await page.getByRole('main').innerText()
    assert.match(main, /expires: \w{3} \d{1,2}, \d{4}, 00:00 UTC/)
    assert.match(main, /maximum key lifetime: no limit → 90 days/)
    assert.match(main, /from 127\.0\.0\.1/)
    assert.match(main, /name: Bob → Robert/)
    await checkPage(page, 'audit', `${width}-${scheme}`)
    await page.getByRole('combobox', { name: 'Action' }).click()
    await page.getByRole('option', { name: 'Key created' }).click()
    await page.getByRole('button', { name: 'Ann', exact: true }).first().click()
    await entries.filter({ hasText: 'Bob' }).waitFor({ state: 'detached' })
    await entries.first().waitFor()
    assert.equal(await entries.count(), 1)
    await page.getByLabel('To (UTC)').fill('2020-01-01')
    await page.getByText('No matching entries').waitFor()
    await checkPage(page, 'audit-no-match', `${width}-${scheme}`)
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await entries.filter({ hasText: '“of Bob”' }).getByRole('button', { name: '“of Bob”' }).click()
    await page.getByRole('button', { name: 'Remove the filter by target of Bob' }).waitFor()
    await entries.filter({ hasText: '“of Ann”' }).waitFor({ state: 'detached' })
    await checkPage(page, 'audit-filtered', `${width}-${scheme}`)
    await page.getByRole('button', { name: 'Export' }).click()
    const downloading = page.waitForEvent('download')
    await page.getByRole('menuitem', { name: 'CSV' }).click()
    const file = await downloading
    assert.match(file.suggestedFilename(), /^adit-audit-acme-\d{4}-\d{2}-\d{2}\.csv$/)
    const lines = readFileSync(await file.path(), 'utf8')
      .trimEnd()
      .split('\r\n')
    assert.equal(lines.length, 2)
    assert.match(lines[1] ?? '', /,key\.created,key,of Bob,tok_/)
  }
})
