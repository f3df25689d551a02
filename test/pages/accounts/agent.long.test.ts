// The page that approves the sign-in of an agent.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { CALLBACK, createRequest, exchange, registerClient } from '../../support/accounts/agents.ts'
import { addMember, linkFor, PASSWORD, serveWithOwner } from '../../support/accounts/users.ts'
import { addWorkspace } from '../../support/api/server.ts'
import { openBrowser, test } from '../../support/browser.ts'
import { readRows } from '../../support/databases/rows.ts'
import { listen } from '../../support/network/listen.ts'
import { button, checkEveryView, DESKTOP, field, openPage, signInAs, visit } from '../support/harness.ts'

const TITLE = 'Sign in an agent'

const CLICK_AFTER_FOCUS = `(async () => {
  dispatchEvent(new Event('focus'))
  await null
  const approve = document.querySelector('button[type=submit]')
  approve.click()
  return !approve.disabled
})()`

test('an agent is approved after signing in, in the chosen workspace, and never by its link alone', async (t) => {
  const browser = await openBrowser(t)
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await addWorkspace(server, 'elsewhere')
  await ann.post('/links/redeem', { link: await linkFor(server, ann.email, 'admin', 'elsewhere') })
  const arrived = Promise.withResolvers<{ url: URL; referrer: string | undefined }>()
  const agent = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://localhost')
    if (url.pathname === '/callback') arrived.resolve({ url, referrer: request.headers.referer })
    response.setHeader('content-type', 'text/html').end('<h1>Back at the agent</h1>')
  })
  const redirectUri = `http://127.0.0.1:${await listen(t, agent)}/callback`
  const clientId = await registerClient(server.url, 'http://127.0.0.1/callback', 'Local agent')
  const { query, form } = createRequest(server.url, clientId, { redirect_uri: redirectUri })
  const context = await browser.newContext({ viewport: DESKTOP })
  const { page } = await openPage(t, context)
  const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor()

  await page.goto(`${server.url}/authorize?${query}`)
  await field(page, 'Email').fill(ann.email)
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Sign in').click()
  await heading(TITLE)
  await page.getByText('Local agent', { exact: true }).waitFor()
  await page.getByText('An app on this computer (127.0.0.1)', { exact: true }).waitFor()
  await page.getByText('Unknown: the name is not verified').waitFor()
  assert.equal(await field(page, 'Also manage API keys').isChecked(), false)
  await checkEveryView(page, 'agent-approve')
  await field(page, 'Also manage API keys').check()
  await field(page, 'Workspace').selectOption('elsewhere')
  assert.equal(await field(page, 'Also manage API keys').isChecked(), false, 'allowed for one workspace only')
  await field(page, 'Also manage API keys').check()
  await button(page, 'Approve').click()
  const { url, referrer } = await arrived.promise
  assert.equal(referrer, undefined)
  await heading('Back at the agent')
  const { code, state, iss } = Object.fromEntries(url.searchParams)
  assert.deepEqual([state, iss], ['state of the agent', server.url])
  const { json } = await exchange(server.url, { ...form, code })
  assert.equal(json.scope, 'mcp manage-keys')

  await page.goto(`${server.url}/w/elsewhere/keys`)
  await page.getByText('Your agent (127.0.0.1), valid at /mcp only, manages API keys').waitFor()
  await button(page, 'Revoke Local agent').waitFor()
  assert.equal(await button(page, 'Rotate Local agent').count(), 0)
  await checkEveryView(page, 'agent-key')
})

test('a click that follows at once on getting the focus approves nothing', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const { query } = createRequest(server.url, await registerClient(server.url))
  const page = await visit(t, server, ann, `/authorize?${query}`)
  await page.route('https://agent.example.com/**', (route) => route.fulfill({ body: 'agent' }))
  await page.getByRole('button', { name: 'Approve', disabled: false }).waitFor()
  // Browsers under test believe that they always have the focus.
  const isApprovable = await page.evaluate(CLICK_AFTER_FOCUS)
  assert.equal(isApprovable, false)
  await button(page, 'Approve').click()
  await page.waitForURL(/^https:\/\/agent\.example\.com\/callback\?app=1&code=/)
  const approvals = await readRows(server.services, 'audit_log', { action: 'agent.approved' })
  assert.equal(approvals.length, 1)
})

test('an agent that cannot be approved gets an error only after a click, and only if it is known', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const name = 'x'.repeat(80)
  const clientId = await registerClient(server.url, CALLBACK, name)
  const withoutPkce = createRequest(server.url, clientId, { code_challenge_method: 'plain' })
  const page = await visit(t, server, ann, `/authorize?${withoutPkce.query}`)
  await page.route('https://agent.example.com/**', (route) => route.fulfill({ body: 'agent' }))
  await page.getByText(/Its request is invalid: PKCE is required/).waitFor()
  await checkEveryView(page, 'agent-invalid')
  await button(page, 'Return to the agent').click()
  await page.waitForURL(/^https:\/\/agent\.example\.com\/callback\?app=1&error=invalid_request/)

  const elsewhere = createRequest(server.url, clientId, { redirect_uri: 'https://evil.example.com/' })
  await page.goto(`${server.url}/authorize?${elsewhere.query}`)
  await page.getByText(/has not registered the redirect_uri/).waitFor()
  assert.equal(await page.getByRole('button').count(), 0)
  assert.equal(await page.getByRole('link').count(), 0)
  await checkEveryView(page, 'agent-unknown')

  const mia = await addMember(server, 'Mia', 'member')
  await ann.post('/workspaces/acme/policy', { keyCreators: 'admin' })
  await page.context().clearCookies()
  await signInAs(page.context(), server.url, mia)
  await page.goto(`${server.url}/authorize?${createRequest(server.url, clientId).query}`)
  await page.getByText(/lets only admins and owners create API keys\. Ask one of them/).waitFor()
  assert.equal(await button(page, 'Approve').count(), 0)
  await checkEveryView(page, 'agent-member')
  await button(page, 'Deny').click()
  await page.waitForURL(/error=access_denied&error_description=The\+policy/)
})

test('an app whose scheme the browser does not know can be opened again', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const uri = 'com.example.app:/callback'
  const { query } = createRequest(server.url, await registerClient(server.url, uri), { redirect_uri: uri })
  const page = await visit(t, server, ann, `/authorize?${query}`)
  await page.getByText('com.example.app:', { exact: true }).waitFor()
  await button(page, 'Approve').click()
  const link = page.getByRole('link', { name: 'Open the agent' })
  await link.waitFor()
  assert.match((await link.getAttribute('href')) ?? '', /^com\.example\.app:\/callback\?code=/)
  await checkEveryView(page, 'agent-app')
})
