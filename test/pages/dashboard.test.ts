// The dashboard from the setup link to a revoked key, what each role is offered, and behavior while offline.
import assert from 'node:assert/strict'
import { addMember, PASSWORD } from '../support/accounts/users.ts'
import { caller, serve } from '../support/api/server.ts'
import { openBrowser, test } from '../support/browser.ts'
import { createDatabase } from '../support/databases/create.ts'
import { startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'
import { button, CLIPBOARD, DESKTOP, field, goTo, openPage, openPageAs, toast } from './support/harness.ts'

const LABEL = '<img src=x onerror=alert(1)>'

for (const variant of ['A', 'B'] as const)
  test(`variant ${variant}: an owner account is created, a key created, used and revoked, and both are in the audit log`, async (t) => {
    const browser = await openBrowser(t)
    const env = {
      ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
      ADIT_API_VARIANT: variant,
      ADIT_LOG_LEVEL: 'trace',
    }
    const serving = await startServing(t, env)
    const { setupLink } = JSON.parse((await serving.waitFor(/^\{.*\}$/m))[0])
    const context = await browser.newContext({ viewport: DESKTOP })
    const { page, errors } = await openPage(context)
    const requests: string[] = []
    page.on('request', (request) => requests.push(`${request.url()} ${request.headers().referer ?? ''}`))

    await page.goto(setupLink)
    await page.getByRole('heading', { name: 'Create the owner account' }).waitFor()
    await field(page, 'Email').fill('ann@example.com')
    await field(page, 'Name').fill('Ann Example')
    await field(page, 'Password').fill(PASSWORD)
    assert.ok(!page.url().includes('#'), 'the token is removed from the address bar')
    await button(page, 'Create account').click()
    await toast(page, 'Account created.').waitFor()
    await page.getByRole('heading', { level: 1, name: 'Default' }).waitFor()
    await page.getByText('default.localhost').first().waitFor()

    await goTo(page, 'API keys')
    await button(page, 'Create key').first().click()
    await field(page, 'Label').fill(LABEL)
    await page.getByText('28 / 80').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
    const raw = page.getByTestId('raw-key')
    const key = ((await raw.textContent()) ?? '').trim()
    assert.match(key, /^adit_[0-9A-Za-z]{49}$/)
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    await page.waitForTimeout(300)
    assert.ok(await raw.isVisible(), 'neither Escape nor a click outside closes the dialog')

    const call = caller(serving.api, key)
    assert.equal((await call('GET', '/workspace')).status, 200)
    await button(page, 'Done').click()
    await raw.waitFor({ state: 'detached' })
    await toast(page, `API key “${LABEL}” created.`).waitFor()
    await page.getByText(LABEL, { exact: true }).waitFor()
    await until(
      'the list shows that the key was used',
      async () => {
        await page.reload()
        await page.getByText(LABEL, { exact: true }).waitFor()
        const row = page.getByRole('row', { name: /onerror/ })
        return !((await row.textContent()) ?? '').includes('Never')
      },
      15_000,
    )

    const traces = [
      await page.content(),
      page.url(),
      ...requests,
      JSON.stringify(await context.storageState()),
      (await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')) as string,
    ].join('\n')
    assert.ok(!traces.includes(key), 'the raw key is left in the browser')
    assert.ok(!traces.includes(setupLink.split('#')[1]), 'the link token is left in the browser')

    await button(page, `Revoke ${LABEL}`).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(LABEL).first().waitFor()
    await dialog.getByRole('button', { name: 'Revoke key' }).click()
    await dialog.waitFor({ state: 'detached' })
    await toast(page, `API key “${LABEL}” revoked.`).waitFor()
    assert.equal((await call('GET', '/workspace')).status, 401)

    await goTo(page, 'Audit log')
    await page.getByText('revoked API key').first().waitFor()
    const entries = (await page.getByRole('main').innerText()).replaceAll(/\s+/g, ' ')
    assert.match(entries, /Ann Example revoked API key “<img src=x onerror=alert\(1\)>”/)
    assert.match(entries, /Ann Example created API key “<img src=x onerror=alert\(1\)>”/)
    assert.deepEqual(errors, [])

    serving.child.kill('SIGTERM')
    const { stderr } = await serving.ended
    for (const secret of [key, PASSWORD, setupLink.split('#')[1]])
      assert.ok(!stderr.includes(secret), 'a secret is in the log')
  })

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
  const server = await serve(t, { engine: 'sqlite' })
  const ann = await addMember(server, 'Ann', 'owner')
  await ann.post('/workspaces/acme/keys', { label: 'by a user' })
  const { id } = (await server.post('/tokens', { label: 'by a key' })).json
  const { page } = await openPageAs(t, server.url, ann, CLIPBOARD)
  await page.goto(`${server.url}/w/acme/keys`)
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
  const server = await serve(t, { engine: 'sqlite' })
  const ann = await addMember(server, 'Ann', 'owner')
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
  const server = await serve(t, { engine: 'sqlite' })
  const ann = await addMember(server, 'Ann', 'owner')
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
