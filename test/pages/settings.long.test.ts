// The settings of a workspace: name, policy, archiving; creating a workspace; required two-factor
// authentication.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { generateCode } from '../support/accounts/authenticator.ts'
import { addMember, PASSWORD, serveWithOwner, type TestBrowser } from '../support/accounts/users.ts'
import { serve } from '../support/api/server.ts'
import { test } from '../support/browser.ts'
import { button, checkEveryView, field, goTo, toast, visit } from './support/harness.ts'

test('an owner renames a workspace, sets its policy, creates another one and archives it', async (t) => {
  const { server, ann } = await serveWithOwner(t, {
    engine: 'sqlite',
    env: { ADIT_WORKSPACE_CREATION: 'users' },
  })
  const page = await visit(t, server, ann, '/w/acme/settings')

  await field(page, 'Workspace name').fill('Acme Corporation')
  await button(page, 'Save name').click()
  await toast(page, 'Name saved.').waitFor()
  await button(page, 'Workspace: Acme Corporation').waitFor()

  for (const invalid of ['0', '1.5', '3651', 'soon']) {
    await field(page, 'Maximum key lifetime (days)').fill(invalid)
    await page.getByText('Enter a whole number from 1 to 3650').waitFor()
  }
  await field(page, 'Maximum key lifetime (days)').fill('30')
  await field(page, 'Owners only').check()
  await page.getByRole('checkbox', { name: 'API keys can manage API keys' }).uncheck()
  await button(page, 'Save policy').click()
  await toast(page, 'Policy saved.').waitFor()
  const { policy } = (await ann.get('/workspaces/acme')).json
  assert.deepEqual(policy, {
    keyDaysMax: 30,
    keysManageKeys: false,
    keyCreators: 'owner',
    twoFactorRequired: false,
  })
  await page.getByRole('checkbox', { name: 'Require two-factor authentication' }).check()
  await button(page, 'Save policy').click()
  await page.getByText('Set up two-factor authentication for your own account first.').waitFor()
  await checkEveryView(page, 'settings')

  await page.goto(`${server.url}/w/acme/keys?create`)
  const expires = page.getByLabel('Expires', { exact: true })
  await page.getByRole('option', { name: 'In 30 days (maximum)' }).waitFor({ state: 'attached' })
  assert.equal(await expires.locator('option').filter({ hasText: 'Never' }).count(), 0)
  await page.keyboard.press('Escape')

  await createWorkspace(page)
  await goTo(page, 'Settings')
  await button(page, 'Archive workspace').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Type old-project to confirm').fill('old-project')
  await checkEveryView(page, 'archive-dialog')
  await dialog.getByRole('button', { name: 'Archive workspace' }).click()
  await page.getByRole('heading', { name: 'Old Project is archived' }).waitFor()
  await checkEveryView(page, 'archived')
  await page.goto(server.url)
  await button(page, 'Workspace: Acme Corporation').waitFor()
})

async function createWorkspace(page: Page): Promise<void> {
  await button(page, 'Workspace: Acme Corporation').click()
  await page.getByRole('menuitem', { name: 'Create workspace' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Workspace name').fill('Acme')
  await dialog.getByRole('button', { name: 'Create workspace' }).click()
  await dialog.getByText('Workspace "acme" already exists.').waitFor()
  await checkEveryView(page, 'create-workspace')
  await dialog.getByLabel('Workspace name').fill('Old Project')
  await dialog.getByRole('button', { name: 'Create workspace' }).click()
  await button(page, 'Workspace: Old Project').waitFor()
}

test('a member without required two-factor authentication is led to its setup, at once', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const olga = await addMember(server, 'Olga', 'owner')
  const bob = await addMember(server, 'Bob', 'member')
  const page = await visit(t, server, bob, '/w/acme/settings')
  await page.getByText('Only owners can change these settings.').waitFor()
  assert.equal(await field(page, 'Workspace name').isDisabled(), true)

  await requireTwoFactor(olga.browser)
  await goTo(page, 'Tunnels').catch(() => {})
  await page.getByRole('heading', { name: 'Acme requires two-factor authentication' }).waitFor()
  await checkEveryView(page, 'two-factor-required')
  await button(page, 'Set up two-factor authentication').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Continue' }).click()
  const secret = await dialog.getByText(/^([A-Z2-7]{4} )+[A-Z2-7]{1,4}$/).innerText()
  await dialog.getByLabel('Code', { exact: true }).fill(generateCode(secret.replaceAll(' ', '')))
  await dialog.getByRole('button', { name: 'Turn on' }).click()
  await page.getByRole('heading', { level: 1, name: 'Tunnels' }).waitFor()
})

async function requireTwoFactor(owner: TestBrowser): Promise<void> {
  const { json: setup } = await owner.post('/account/two-factor', { password: PASSWORD })
  await owner.post('/account/two-factor/confirm', { code: generateCode(setup.secret) })
  const { policy } = (await owner.get('/workspaces/acme')).json
  const saved = await owner.post('/workspaces/acme/policy', { ...policy, twoFactorRequired: true })
  assert.equal(saved.status, 200)
}
