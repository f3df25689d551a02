// Webhooks in the dashboard: from adding one to sending a delivery again.
import assert from 'node:assert/strict'
import { serveWithOwner } from '../support/accounts/users.ts'
import { test } from '../support/browser.ts'
import { responses, startReceiver } from '../support/events/webhook-receiver.ts'
import { addEndpoint } from '../support/events/webhooks.ts'
import { button, checkEveryView, field, goTo, toast, visit } from './support/harness.ts'

test('an owner adds a webhook, sees its secret once, sends a test event, and the delivery again', async (t) => {
  const env = { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env })
  const receiver = await startReceiver(t, responses.failure)
  const page = await visit(t, server, ann, '/w/acme')
  await goTo(page, 'Webhooks')
  await page.getByText('No webhooks yet').waitFor()
  await checkEveryView(page, 'webhooks-empty')

  await button(page, 'Add webhook').first().click()
  const dialog = page.getByRole('dialog')
  await field(page, 'URL').fill(receiver.url)
  await field(page, 'Description').fill('Alerts')
  await dialog.getByLabel('Selected events').first().click()
  await dialog.getByLabel('API key created').click()
  await checkEveryView(page, 'webhooks-add')
  await dialog.getByRole('button', { name: 'Add webhook' }).click()
  receiver.secret = (await dialog.getByTestId('webhook-secret').textContent()) ?? ''
  assert.match(receiver.secret, /^whsec_/)
  await checkEveryView(page, 'webhooks-secret')
  await button(page, 'Done').click()
  assert.equal(await page.getByText(receiver.secret).count(), 0)

  await page.getByRole('link', { name: 'Alerts' }).click()
  await button(page, 'Send test event').click()
  await toast(page, 'Test event queued.').waitFor()
  await page.getByText('Deliveries are failing').waitFor()
  const row = page.getByRole('button', { name: /webhook\.test/ })
  await row.click()
  await page.getByText('Response: HTTP 500').waitFor()
  await checkEveryView(page, 'webhooks-failing')
  receiver.respond = responses.ok
  await button(page, 'Retry now').click()
  await page.getByText('Delivered', { exact: true }).waitFor()
  await button(page, 'Resend').click()
  await toast(page, 'Resending the event.').first().waitFor()
  await page.getByText('Delivered', { exact: true }).nth(1).waitFor()
  assert.deepEqual(new Set(receiver.received.map(({ id }) => id)).size, 1)

  const overlap = dialog.getByLabel('Sign with both secrets for')
  await button(page, 'Rotate secret').click()
  await overlap.selectOption('1 hour')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await button(page, 'Rotate secret').click()
  assert.equal(await overlap.inputValue(), '24h', 'a canceled choice does not stay')
  await dialog.getByRole('button', { name: 'Rotate secret' }).click()
  const rotated = await dialog.getByTestId('webhook-secret').textContent()
  assert.notEqual(rotated, receiver.secret)
  await button(page, 'Done').click()
  await page.getByText('Also signed with the previous secret').waitFor()

  await button(page, 'Disable').click()
  await page.getByText('This webhook is disabled').waitFor()
  await checkEveryView(page, 'webhooks-disabled')
  await button(page, 'Enable').click()
  await button(page, 'Edit').click()
  await dialog.getByLabel('All events').click()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await goTo(page, 'Audit log')
  await page.getByText('events: key.created → all').waitFor()
  await goTo(page, 'Webhooks')
  await page.getByRole('link', { name: 'Alerts' }).click()
  await button(page, 'Delete').click()
  await dialog.getByRole('button', { name: 'Delete webhook' }).click()
  await toast(page, 'Webhook deleted.').waitFor()
  await page.getByText('No webhooks yet').waitFor()
})

test('a response of a receiver is shown as text, whatever markup and characters it has', async (t) => {
  const env = { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite', env })
  const attack = 'window.attacked = true'
  const markup =
    `</pre></script><script>${attack}</script><img src=x onerror="${attack}"><svg onload="${attack}">` +
    `<a href="javascript:${attack}">key</a><iframe srcdoc="<script>parent.${attack}</script>"></iframe>` +
    `{{constructor.constructor('${attack}')()}}<style>body { display: none }</style>`
  const receiver = await startReceiver(t, (response) =>
    response.writeHead(500, { 'content-type': 'text/html' }).end(`\u202e${markup}`),
  )
  await addEndpoint(server.services, server.workspace.id, { url: receiver.url, description: 'Alerts' })
  const page = await visit(t, server, ann, '/w/acme/webhooks')
  await page.getByRole('link', { name: 'Alerts' }).click()
  await button(page, 'Send test event').click()
  await page.getByText('Deliveries are failing').waitFor()
  await page.getByRole('button', { name: /webhook\.test/ }).click()
  await page.getByText('Response: HTTP 500').waitFor()
  await page.getByText(`\u{fffd}${markup}`, { exact: true }).waitFor()
  assert.equal(await page.evaluate(() => 'attacked' in globalThis), false)
  assert.equal(await page.locator('iframe, img[src="x"], a[href^="javascript:"]').count(), 0)
})
