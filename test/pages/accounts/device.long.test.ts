// The page that approves the sign-in of a terminal.
import assert from 'node:assert/strict'
import { DAY_MS } from '../../../src/lib/time.ts'
import { pollDevice } from '../../../src/server/domain/devices/device-keys.ts'
import { archiveAsOperator } from '../../../src/server/domain/workspaces/archive.ts'
import { startDevice } from '../../support/accounts/devices.ts'
import { addMember, linkFor, PASSWORD, serveWithOwner } from '../../support/accounts/users.ts'
import { addWorkspace, operator } from '../../support/api/server.ts'
import { openBrowser, test } from '../../support/browser.ts'
import { button, checkEveryView, DESKTOP, field, openPage, signInAs } from '../support/harness.ts'

test('a terminal is approved after signing in, in the chosen workspace, and never by its link alone', async (t) => {
  const browser = await openBrowser(t)
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await addWorkspace(server, 'elsewhere')
  await ann.post('/links/redeem', { link: await linkFor(server, ann.email, 'admin', 'elsewhere') })
  const context = await browser.newContext({ viewport: DESKTOP })
  const { page } = await openPage(t, context)
  /** Not by HTTP, where polls have an interval. */
  const poll = (deviceCode: string) => pollDevice(server.services, { deviceCode, address: '127.0.0.1' })
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
  const { deviceCode, userCode, json } = await startDevice(server.url)

  await page.goto(json.verification_uri_complete)
  await field(page, 'Email').fill(ann.email)
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Sign in').click()
  await heading('Sign in a terminal')
  await page.getByText(userCode, { exact: true }).waitFor()
  await page.getByText('anns-laptop', { exact: true }).waitFor()
  await page.getByText('127.0.0.1', { exact: true }).waitFor()
  assert.equal((await poll(deviceCode)).state, 'pending')
  await checkEveryView(page, 'device-approve')

  await field(page, 'Workspace').selectOption('elsewhere')
  await field(page, 'Expires').selectOption('In 30 days')
  await button(page, 'Approve').click()
  await heading('Approved')
  await checkEveryView(page, 'device-approved')
  const granted = await poll(deviceCode)
  assert.ok(granted.state === 'granted')
  assert.deepEqual([granted.key.workspace, granted.key.label], ['elsewhere', 'anns-laptop'])
  assert.ok(Math.abs(Date.parse(granted.key.expiresAt ?? '') - Date.now() - 30 * DAY_MS) < 60_000)
  await heading('Signed in')

  const denied = await startDevice(server.url, 'x'.repeat(80))
  await page.goto(`${server.url}/device`)
  await field(page, 'Code').fill('BBBB-BBBB')
  await button(page, 'Continue').click()
  await page.getByText(/This code is invalid, expired or already used/).waitFor()
  await checkEveryView(page, 'device-code')
  await field(page, 'Code').fill(denied.userCode.toLowerCase().replace('-', ''))
  await button(page, 'Continue').click()
  await page.getByText(denied.userCode, { exact: true }).waitFor()
  await button(page, 'Deny').click()
  await heading('Denied')
  assert.equal((await poll(denied.deviceCode)).state, 'denied')

  const failed = await startDevice(server.url)
  await page.goto(failed.json.verification_uri_complete)
  await field(page, 'Workspace').selectOption('elsewhere')
  await button(page, 'Approve').click()
  await heading('Approved')
  await archiveAsOperator(server.services, operator, 'elsewhere')
  assert.equal((await poll(failed.deviceCode)).state, 'failed')
  await heading('Not signed in')
  await page.getByText(/This workspace is archived/).waitFor()

  const { userCode: another } = await startDevice(server.url)
  await context.clearCookies()
  await signInAs(context, server.url, await addMember(server, 'Mia', 'member'))
  await page.goto(`${server.url}/device?code=${another}`)
  await button(page, 'Approve').waitFor()
  await ann.post('/workspaces/acme/policy', { keyCreators: 'admin' })
  await page.reload()
  await page.getByText(/lets only admins and owners create API keys\. Ask one of them/).waitFor()
  assert.equal(await button(page, 'Approve').count(), 0)
  await checkEveryView(page, 'device-member')
})
