// The expiry of API keys in the dashboard.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { serve } from '../support/server.ts'
import { until } from '../support/until.ts'
import { addMember } from '../support/users.ts'
import { button, checkEveryView, DESKTOP, field, NO_BROWSER, openPage, signInAs } from './harness.ts'

test('a key is created with an expiry, and then listed as expired', async (t) => {
  const browser = await openBrowser(t)
  if (!browser) return t.skip(NO_BROWSER)
  const server = await serve(t, { engine: 'sqlite' })
  const ann = await addMember(server, 'Ann', 'owner')
  const soon = new Date(Date.now() + 1_000).toISOString()
  const { expiresAt } = (await ann.post('/workspaces/acme/keys', { label: 'old', expiresAt: soon })).json
  const context = await browser.newContext({ viewport: DESKTOP })
  await signInAs(context, server.url, ann)
  const { page, errors } = await openPage(context)
  await page.goto(`${server.url}/w/acme/keys?create`)

  await field(page, 'Label').fill('laptop')
  await field(page, 'Expires').selectOption('On a date')
  const day = new Date(Date.now() + 20 * 24 * 60 * 60 * 1000).toISOString().slice(0, 10)
  await field(page, 'Last day').fill(day)
  await checkEveryView(page, 'keys-create-expiry')
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
  await page
    .getByRole('dialog')
    .getByText(/Expires in \d+ days/)
    .waitFor()
  await button(page, 'Done').click()
  await page
    .getByRole('row', { name: /laptop/ })
    .getByText(/Expires in 2[01] days/)
    .waitFor()

  await until('the other one has expired', () => Date.now() >= Date.parse(expiresAt))
  await page.getByRole('radiogroup', { name: 'Filter by status' }).getByText('Expired').click()
  const row = page.getByRole('row', { name: /old/ })
  await row.getByText('Expired', { exact: true }).waitFor()
  assert.equal(await row.getByRole('button', { name: /Revoke/ }).count(), 0)
  await checkEveryView(page, 'keys-expired')
  assert.deepEqual(errors, [])
})
