// The main thing that each page of the dashboard is for, once, in a real browser. The long tests have the
// rest.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { fillWithUsage } from '../../src/server/domain/setup/demo.ts'
import { createRequest, exchange, registerClient } from '../support/accounts/agents.ts'
import { poll, startDevice } from '../support/accounts/devices.ts'
import { startMailServer } from '../support/accounts/mail-server.ts'
import { addMember, linkFor, PASSWORD, serveWithOwner } from '../support/accounts/users.ts'
import { test as browserTest, hasBrowser } from '../support/browser.ts'
import { simulateEdge } from '../support/edges/connected-edge.ts'
import { startReceiver } from '../support/events/webhook-receiver.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'
import { button, field, goTo, openPageAs, signInAs } from './support/harness.ts'
import { runOwnerJourney } from './support/owner-journey.ts'
import { rows, samples } from './support/tunnels-page.ts'

const mail = await startMailServer({ after })
const receiver = await startReceiver({ after })
const env = { ...mail.env, ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }
const { server, ann } = await serveWithOwner({ after }, { engine: 'sqlite', env })
await fillWithUsage(server.services, server.workspace.id, 30, () => {})
await simulateEdge({ after }, server, 'fra-1', samples(server, 2))

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name }).waitFor()
const dialog = (page: Page) => page.getByRole('dialog')

async function signIn(page: Page, email: string, password = PASSWORD): Promise<void> {
  await field(page, 'Email').fill(email)
  await field(page, 'Password').fill(password)
  await button(page, 'Sign in').click()
}

/** What a user does on each page, by its route in web/src/app.tsx. Pages of a workspace are opened as Ann. */
const journeys: Record<string, (page: Page) => Promise<void>> = {
  async '/'(page) {
    await page.goto(server.url)
    await page.waitForURL(`${server.url}/w/acme`)
  },
  async '/w/:workspace'(page) {
    await page.goto(`${server.url}/w/acme`)
    await page.getByText('web-0').first().waitFor()
    await page.getByRole('heading', { name: 'Last 30 days' }).waitFor()
  },
  async '/w/:workspace/tunnels'(page) {
    await page.goto(`${server.url}/w/acme/tunnels`)
    await button(page, 'Close https://api-1.acme.localhost').click()
    await dialog(page).getByRole('button', { name: 'Close tunnel' }).click()
    await rows(page).filter({ hasText: 'api-1' }).waitFor({ state: 'detached' })
  },
  async '/w/:workspace/keys'(page) {
    await page.goto(`${server.url}/w/acme/keys`)
    await button(page, 'Create key').first().click()
    await field(page, 'Label').fill('laptop')
    await dialog(page).getByRole('button', { name: 'Create key' }).click()
    const key = (await page.getByTestId('raw-key').textContent()) ?? ''
    assert.equal((await server.call('GET', '/workspace', { key })).status, 200)
    await button(page, 'Done').click()
    await page.getByRole('row', { name: /laptop/ }).waitFor()
  },
  async '/w/:workspace/usage'(page) {
    await page.goto(`${server.url}/w/acme/usage`)
    await page.getByRole('heading', { name: 'Requests per day' }).waitFor()
    const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Export CSV').click()])
    assert.match(readFileSync(await download.path(), 'utf8'), /^workspace,day,requests,/)
  },
  async '/w/:workspace/members'(page) {
    await page.goto(`${server.url}/w/acme/members`)
    await button(page, 'Invite').click()
    await dialog(page).getByLabel('Email').fill('eve@example.com')
    await dialog(page).getByRole('button', { name: 'Invite' }).click()
    await until('the invitation is sent', () => mail.emails.some(({ to }) => to === 'eve@example.com'))
    await button(page, 'Done').click()
    await button(page, 'Revoke the invitation of eve@example.com').waitFor()
  },
  async '/w/:workspace/webhooks'(page) {
    await page.goto(`${server.url}/w/acme/webhooks`)
    await button(page, 'Add webhook').first().click()
    await field(page, 'URL').fill(receiver.url)
    await field(page, 'Description').fill('Alerts')
    await dialog(page).getByRole('button', { name: 'Add webhook' }).click()
    receiver.secret = (await dialog(page).getByTestId('webhook-secret').textContent()) ?? ''
    await button(page, 'Done').click()
    await page.getByRole('link', { name: 'Alerts' }).waitFor()
  },
  async '/w/:workspace/webhooks/:id'(page) {
    await page.goto(`${server.url}/w/acme/webhooks`)
    await page.getByRole('link', { name: 'Alerts' }).click()
    await button(page, 'Send test event').click()
    await page.getByText('Delivered', { exact: true }).waitFor()
    assert.ok(receiver.received.some(({ body }) => body.type === 'webhook.test'))
  },
  async '/w/:workspace/audit'(page) {
    await page.goto(`${server.url}/w/acme/audit`)
    await page.getByText('created API key').first().waitFor()
    await page.getByRole('combobox', { name: 'Action' }).click()
    await page.getByRole('option', { name: 'Key created' }).click()
    await page.getByRole('main').getByRole('listitem').first().waitFor()
  },
  async '/w/:workspace/settings'(page) {
    await page.goto(`${server.url}/w/acme/settings`)
    await field(page, 'Workspace name').fill('Acme Corporation')
    await button(page, 'Save name').click()
    await button(page, 'Workspace: Acme Corporation').waitFor()
  },
  async '/account'(page) {
    await page.goto(`${server.url}/account`)
    await field(page, 'Name').fill('Ann Example')
    await button(page, 'Save').click()
    await button(page, 'Account menu: Ann Example').waitFor()
  },
  async '/sign-in'(page) {
    await page.context().clearCookies()
    await page.goto(`${server.url}/w/acme/members`)
    await page.waitForURL(`${server.url}/sign-in`)
    await signIn(page, ann.email)
    await heading(page, 'Members')
  },
  async '/forgot-password'(page) {
    const bob = await addMember(server, 'Bob', 'member')
    await page.context().clearCookies()
    await page.goto(`${server.url}/sign-in`)
    await page.getByRole('link', { name: 'Forgot password?' }).click()
    await field(page, 'Email').fill(bob.email)
    await button(page, 'Send reset link').click()
    await until('the link is sent', () => mail.emails.some(({ to }) => to === bob.email))
    const { text } = mail.emails.find(({ to }) => to === bob.email) ?? assert.fail()
    await page.goto(/http\S+#[\w-]{43}/.exec(text)?.[0] ?? assert.fail(text))
    await field(page, 'Password').fill('another good password')
    await button(page, 'Set password').click()
    await button(page, 'Account menu: Bob').waitFor()
  },
  async '/link'(page) {
    await page.context().clearCookies()
    await page.goto(`${server.url}/link#${await linkFor(server, 'mia@example.com', 'member')}`)
    await field(page, 'Name').fill('Mia')
    await field(page, 'Password').fill(PASSWORD)
    await button(page, 'Create account').click()
    await page.getByText('adit tunnel 3000').waitFor()
    assert.deepEqual(await page.locator('pre').allInnerTexts(), [
      `curl -fsSL ${server.url}/install.sh | sh && export PATH="$HOME/.local/bin:$PATH"`,
      `adit login ${server.url}`,
      'adit tunnel 3000',
    ])
    await goTo(page, 'Members')
  },
  async '/device'(page) {
    const { deviceCode, userCode } = await startDevice(server.url)
    await page.goto(`${server.url}/device`)
    await field(page, 'Code').fill(userCode)
    await button(page, 'Continue').click()
    await button(page, 'Approve').click()
    await heading(page, 'Approved')
    assert.match((await poll(server.url, deviceCode)).json.access_token, /^adit_/)
  },
  async '/authorize'(page) {
    await page.route('https://agent.example.com/**', (route) => route.fulfill({ body: 'agent' }))
    const { query, form } = createRequest(server.url, await registerClient(server.url))
    await page.goto(`${server.url}/authorize?${query}`)
    await button(page, 'Approve').click()
    await page.waitForURL(/^https:\/\/agent\.example\.com\/callback/)
    const code = new URL(page.url()).searchParams.get('code') ?? ''
    assert.match((await exchange(server.url, { ...form, code })).json.access_token, /^adit_agent_/)
  },
}

test('every page of the dashboard has a journey', () => {
  const source = readFileSync(join(root, 'web/src/app.tsx'), 'utf8')
  const routes = [...source.matchAll(/\bpath(?:=|: )["']([^"']+)["']/g)].map(([, path]) => path)
  assert.deepEqual(Object.keys(journeys).sort(), routes.sort(), 'add the page to journeys in this file')
})

// One window for all: a new one compiles the scripts again.
const opened = hasBrowser ? await openPageAs({ after }, server.url, ann) : undefined
for (const [path, follow] of Object.entries(journeys))
  browserTest(`the main journey of ${path}`, async () => {
    const { context, page, errors } = opened ?? assert.fail()
    await signInAs(context, server.url, ann)
    await follow(page)
    assert.deepEqual(errors.splice(0), [])
  })

browserTest(
  'an owner account is created, a key created, used and revoked, and both are in the audit log',
  (t) => runOwnerJourney(t, 'A'),
)
