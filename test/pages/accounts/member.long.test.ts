// A member of variant A, from the invitation to a revoked key: what the pages offer, and what they do not.
import assert from 'node:assert/strict'
import { fillWithUsage } from '../../../src/server/domain/setup/demo.ts'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { poll, startDevice } from '../../support/accounts/devices.ts'
import { addMember, linkFor, PASSWORD } from '../../support/accounts/users.ts'
import { operator, serve } from '../../support/api/server.ts'
import { openBrowser, test } from '../../support/browser.ts'
import { button, checkEveryView, DESKTOP, field, goTo, openPage, toast } from '../support/harness.ts'

test('a member joins, connects a machine, and creates and revokes an own key', async (t) => {
  const browser = await openBrowser(t)
  const server = await serve(t, { engine: 'sqlite' })
  await addMember(server, 'Ann', 'owner')
  await fillWithUsage(server.services, server.workspace.id, 30, () => {})
  const { page } = await openPage(t, await browser.newContext({ viewport: DESKTOP }))
  const dialog = page.getByRole('dialog')

  await page.goto(`${server.url}/link#${await linkFor(server, 'mia@example.com', 'member')}`)
  await field(page, 'Name').fill('Mia')
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Create account').click()
  const section = page.locator('section').filter({ hasText: 'Connect a machine' })
  await section.getByText('If the edge does not listen on port 8081').waitFor()
  const commands = [
    `curl -fsSL ${server.url}/install.sh | sh && export PATH="$HOME/.local/bin:$PATH"`,
    `adit login ${server.url}`,
    'adit tunnel 3000',
  ]
  assert.deepEqual(await section.locator('pre').allInnerTexts(), commands)
  await checkEveryView(page, 'overview-joined')
  await createEdge(server.services, operator, 'fra-1', { url: 'http://127.0.0.1:9090' })
  await page.reload()
  await section.getByText('adit tunnel 3000').waitFor()
  await page.getByText('Example: http://my-app.acme.localhost:9090', { exact: true }).waitFor()
  assert.equal(await section.getByText('If the edge does not listen').count(), 0, 'the server names the edge')

  const { deviceCode, json } = await startDevice(server.url, 'mias-laptop')
  await page.goto(json.verification_uri_complete)
  await page.getByText('mias-laptop', { exact: true }).waitFor()
  await checkEveryView(page, 'device-approve-member')
  await button(page, 'Approve').click()
  await page.getByRole('heading', { name: 'Approved' }).waitFor()
  const key = (await poll(server.url, deviceCode)).json.access_token
  assert.equal((await server.call('GET', '/workspace', { key })).status, 200)
  await page.getByRole('heading', { name: 'Signed in' }).waitFor()

  await page.goto(`${server.url}/w/acme`)
  const links = page.getByRole('navigation').getByRole('link')
  await links.first().waitFor()
  assert.equal(await section.count(), 0, 'only on the first visit')
  assert.deepEqual(await links.allInnerTexts(), [
    'Overview',
    'Tunnels',
    'API keys',
    'Usage',
    'Members',
    'Audit log',
    'Settings',
    'Account',
  ])
  await goTo(page, 'API keys')
  await page.getByRole('row', { name: /mias-laptop/ }).waitFor()
  await button(page, 'Create key').click()
  await dialog.getByText('A personal key may do what you may').waitFor()
  assert.equal(await dialog.getByRole('checkbox').count(), 0, 'only personal keys')
  await dialog.getByLabel('Label').fill('scripts')
  await checkEveryView(page, 'keys-member-create')
  await dialog.getByRole('button', { name: 'Create key' }).click()
  const created = (await page.getByTestId('raw-key').textContent()) ?? ''
  assert.equal((await server.call('GET', '/workspace', { key: created })).status, 200)
  await button(page, 'Done').click()
  await page.getByRole('row', { name: /scripts/ }).waitFor()
  await checkEveryView(page, 'keys-member-a')
  const revocable = await button(page, /^Revoke/).evaluateAll((all) => all.map((one) => one.ariaLabel))
  assert.deepEqual(revocable.sort(), ['Revoke mias-laptop', 'Revoke scripts'], 'not the key of the workspace')
  await button(page, 'Revoke scripts').click()
  await dialog.getByRole('button', { name: 'Revoke key' }).click()
  await toast(page, /revoked/).waitFor()
  await page.getByRole('row', { name: /scripts/ }).waitFor({ state: 'detached' })
  assert.equal((await server.call('GET', '/workspace', { key: created })).status, 401)

  await goTo(page, 'Members')
  assert.equal(await button(page, 'Invite').count(), 0)
  await goTo(page, 'Settings')
  assert.ok(await field(page, 'Require two-factor authentication').isDisabled())
  assert.equal(await button(page, /^(Save|Archive)/).count(), 0)
  await page.goto(`${server.url}/w/acme/webhooks`)
  await page.getByText(/Only owners/).waitFor()
  await goTo(page, 'Audit log')
  assert.equal(await button(page, 'Export').count(), 0)
})
