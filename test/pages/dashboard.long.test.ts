// What each role is offered, behavior while offline, and the first key of variant B.
import assert from 'node:assert/strict'
import { addMember, serveWithOwner } from '../support/accounts/users.ts'
import { serve } from '../support/api/server.ts'
import { test } from '../support/browser.ts'
import { button, CLIPBOARD, field, goTo, openPageAs, toast, visit } from './support/harness.ts'
import { runOwnerJourney } from './support/owner-journey.ts'

test('variant B: an owner account is created, a key created, used and revoked, and both are in the audit log', (t) =>
  runOwnerJourney(t, 'B'))

test('members are offered keys of their own, but not to revoke, invite or change; admins not to change an owner', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  await addMember(server, 'Olga', 'owner')
  for (const role of ['member', 'admin'] as const) {
    const user = await addMember(server, role === 'admin' ? 'Adam' : 'Mia', role)
    const { page, context } = await openPageAs(t, server.url, user)
    await page.goto(`${server.url}/w/acme/keys`)
    await page.getByRole('row', { name: /first/ }).waitFor()
    const count = async (name: RegExp) => button(page, name).count()
    await button(page, /create key/i).waitFor()
    assert.equal((await count(/^revoke/i)) > 0, role === 'admin')
    await goTo(page, 'Members')
    await page.getByText('olga@example.com').waitFor()
    assert.equal((await count(/invite/i)) > 0, role === 'admin')
    assert.equal(await count(/remove olga/i), 0)
    assert.equal(await page.getByLabel(/role of olga/i).count(), 0)
    await context.close()
  }
})

test('the key list names the user or the key that created a key, and a copy button confirms the copy', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await ann.post('/workspaces/acme/keys', { label: 'by a user' })
  const { id } = (await server.post('/tokens', { label: 'by a key' })).json
  const page = await visit(t, server, ann, '/w/acme/keys', CLIPBOARD)
  await page
    .getByRole('row', { name: /by a key/ })
    .getByText('by API key “first”')
    .waitFor()
  await page
    .getByRole('row', { name: /by a user/ })
    .getByText('by Ann')
    .waitFor()
  await page.getByRole('row', { name: /first/ }).getByText('by the server admin (test)').waitFor()
  await button(page, `Copy ID ${id}`).click()
  await toast(page, 'Copied').waitFor()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), id)
})

test('while the server cannot be reached, pages say that they retry, and load when it is back', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const { page, context } = await openPageAs(t, server.url, ann)
  await page.goto(`${server.url}/w/acme`)
  await page.getByText('acme.localhost').first().waitFor()
  await context.setOffline(true)
  await page.getByRole('navigation').getByRole('link', { name: 'Members' }).click()
  await page.getByText('Cannot reach the server').first().waitFor({ timeout: 20_000 })
  await page.getByText('Retrying automatically').first().waitFor()
  await context.setOffline(false)
  await page.getByText('ann@example.com').waitFor({ timeout: 30_000 })
  await page.getByText('Cannot reach the server').first().waitFor({ state: 'detached' })
})

test('an action that cannot reach the server fails without promising a retry', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const { page, context } = await openPageAs(t, server.url, ann)
  await page.goto(`${server.url}/w/acme/keys?create`)
  await field(page, 'Label').fill('ci')
  await context.route('**/dashboard/api/workspaces/acme/keys', (route) => route.abort())
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Create key' }).click()
  const alert = dialog.getByRole('alert')
  await alert.waitFor()
  assert.equal(await alert.innerText(), 'Could not reach the server. Check your connection and try again.')
  assert.equal(await page.getByText('Retrying automatically').count(), 0)
})
