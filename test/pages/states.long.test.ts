// What the dashboard claims about the state of things: live, in use, changed, left.
import assert from 'node:assert/strict'
import { serveWithOwner } from '../support/accounts/users.ts'
import { openBrowser, test } from '../support/browser.ts'
import { simulateEdge } from '../support/edges/connected-edge.ts'
import { tunnelOf } from '../support/edges/open-tunnels.ts'
import { responses, startReceiver } from '../support/events/webhook-receiver.ts'
import { addEndpoint } from '../support/events/webhooks.ts'
import { until } from '../support/until.ts'
import { button, CLIPBOARD, DESKTOP, field, openPage, saveScreenshot, signInAs } from './support/harness.ts'

const LONG = 'preview-of-the-pull-request-with-a-rather-long-branch-name-4711'

test('the dashboard states what is true', async (t) => {
  const browser = await openBrowser(t)
  const { server, ann } = await serveWithOwner(t, {
    engine: 'sqlite',
    env: { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com', ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' },
  })
  const url = (name: string) => `https://${name}.acme.tunnels.example.com`
  const busy = tunnelOf(server, {
    name: 'web',
    url: url('web'),
    requests: 4_711,
    bytesOut: 9_999,
    streams: 0,
  })
  const long = tunnelOf(server, { name: LONG, url: url(LONG) })
  await simulateEdge(t, server, 'fra-1', [busy, long])
  await ann.post('/workspaces/acme/names', { name: 'closed' })
  const context = await browser.newContext({ viewport: DESKTOP, ...CLIPBOARD })

  await t.test('signed-out pages cause no error in the console', async () => {
    const signedOut = await browser.newContext({ viewport: DESKTOP })
    const page = await signedOut.newPage()
    const errors: string[] = []
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    for (const path of ['/', '/sign-in', '/forgot-password', '/link', '/w/acme']) {
      await page.goto(server.url + path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.waitForLoadState('networkidle')
    }
    assert.deepEqual(errors, [])
    await signedOut.close()
  })

  await signInAs(context, server.url, ann)
  const { page } = await openPage(t, context)

  await t.test('a fresh workspace shows no quota that nobody set', async () => {
    await page.goto(`${server.url}/w/acme`)
    await page.getByText('Tunnel domain').waitFor()
    await page.waitForLoadState('networkidle')
    assert.equal(await page.getByText(/\d left/).count(), 0)
  })

  await t.test('a tunnel with traffic is not called idle, and its name is printed once', async () => {
    await page.goto(`${server.url}/w/acme/tunnels`)
    const row = page.getByRole('row').filter({ hasText: 'web' })
    await row.getByText('4,711').waitFor()
    assert.equal(await row.getByText('Idle').count(), 0)
    await row.getByText('0 in progress').waitFor()
    const text = (await page.getByRole('row').filter({ hasText: LONG }).textContent()) ?? ''
    assert.equal(text.split(LONG).length - 1, 1, text)
    await saveScreenshot(page, 'states-tunnels')
  })

  await t.test('a name in use is not “last used”, and a copied address is a URL', async () => {
    await page.goto(`${server.url}/w/acme/tunnels?tab=names`)
    const item = (name: string) => page.getByRole('listitem').filter({ hasText: name })
    await item('web').getByText('1 open').waitFor()
    assert.equal(
      await item('web')
        .getByText(/Last used/)
        .count(),
      0,
    )
    for (const name of ['web', 'closed']) {
      await item(name)
        .getByRole('button', { name: /^Copy / })
        .click()
      const copied = await page.evaluate('navigator.clipboard.readText()')
      assert.match(String(copied), new RegExp(`^https?://${name}\\.acme\\.tunnels\\.example\\.com$`))
    }
    await saveScreenshot(page, 'states-names')
  })

  await t.test('forms are saved only after a change', async () => {
    await page.goto(`${server.url}/account`)
    const saveName = button(page, 'Save')
    await saveName.waitFor()
    assert.ok(await saveName.isDisabled(), 'account name')
    await field(page, 'Name').fill('Anna')
    assert.ok(await saveName.isEnabled())
    await field(page, 'Name').fill(' Ann ')
    assert.ok(await saveName.isDisabled(), 'spaces are no change')
    await page.goto(`${server.url}/w/acme/settings`)
    for (const name of ['Save name', 'Save policy']) {
      await button(page, name).waitFor()
      assert.ok(await button(page, name).isDisabled(), name)
    }
    await page.getByLabel('Owners only').check()
    assert.ok(await button(page, 'Save policy').isEnabled())
    await page.goto(`${server.url}/w/acme/tunnels?tab=names`)
    await button(page, 'Access rules of web').click()
    const save = page.getByRole('dialog').getByRole('button', { name: 'Save' })
    await save.waitFor()
    assert.ok(await save.isDisabled(), 'access rules')
    await page.getByRole('dialog').getByLabel('Allowed networks').fill('192.0.2.0/24')
    assert.ok(await save.isEnabled())
  })

  await t.test('the result of a webhook test appears as soon as it is there', async () => {
    const receiver = await startReceiver(t, responses.ok)
    const id = await addEndpoint(server.services, server.workspace.id, { url: receiver.url })
    await page.goto(`${server.url}/w/acme/webhooks/${id}`)
    await button(page, 'Edit').click()
    assert.ok(await page.getByRole('dialog').getByRole('button', { name: 'Save' }).isDisabled())
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    await button(page, 'Send test event').click()
    await until('the receiver has it', () => receiver.received.length > 0)
    // Polls are 5 seconds apart.
    await page.getByText('Delivered', { exact: true }).waitFor({ timeout: 3_000 })
  })

  await t.test('on a phone, the filters of the audit log have the same edges', async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${server.url}/w/acme/audit`)
    await page.getByLabel('From (UTC)').waitFor()
    const edges = async (label: string) => {
      const box = await page.getByLabel(label, { exact: true }).first().boundingBox()
      return { left: Math.round(box?.x ?? 0), right: Math.round((box?.x ?? 0) + (box?.width ?? 0)) }
    }
    const [actor, action, from, to] = [
      await edges('Actor'),
      await edges('Action'),
      await edges('From (UTC)'),
      await edges('To (UTC)'),
    ]
    assert.deepEqual(actor, action)
    assert.deepEqual([from.left, to.right], [actor.left, actor.right])
    await saveScreenshot(page, 'states-audit-390')
    await page.setViewportSize(DESKTOP)
  })

  await t.test('a list is not live while the server cannot be reached', async () => {
    await page.goto(`${server.url}/w/acme/tunnels`)
    await page.getByText('Live', { exact: true }).waitFor()
    await context.setOffline(true)
    await page.getByText('Cannot reach the server').waitFor()
    assert.equal(await page.getByText('Live', { exact: true }).count(), 0)
    await page.getByText(/^Out of date: last updated/).waitFor()
    await saveScreenshot(page, 'states-offline')
    await context.setOffline(false)
    await page.getByText('Live', { exact: true }).waitFor()
  })
})
