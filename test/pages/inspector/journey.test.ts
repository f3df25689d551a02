// What the inspector is for, once, in a real browser. The long tests have the rest.
import assert from 'node:assert/strict'
import { test } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { button, field, openPage } from '../support/harness.ts'
import { body, detail, openInspectorPage, part, row, rows, SCRIPT, startSamples } from './support.ts'

test('requests appear as they arrive, are searched, replayed with changes and compared', async (t) => {
  const inspected = await startSamples(t)
  const { page } = await openInspectorPage(t, inspected.link)

  await page.getByText('No requests yet').waitFor()
  assert.ok(!page.url().includes('token'), 'the token is removed from the address')
  const { url } = inspected.tunnel
  await page.getByText(`curl ${url}`).waitFor()

  await inspected.fetch({ path: '/html' })
  await row(page, 'GET /html').waitFor()
  await inspected.fetch({
    method: 'POST',
    path: '/orders?coupon=spring',
    headers: { 'content-type': 'application/json', authorization: 'Bearer top-secret' },
    body: Buffer.from('{"item":"needle","count":1}'),
  })
  await row(page, 'POST /orders').waitFor()
  await inspected.fetch({ path: '/missing' })
  await until('all are listed', async () => (await rows(page).count()) === 3)
  assert.match((await rows(page).first().textContent()) ?? '', /404.*GET \/missing/)

  await row(page, '/html').click()
  assert.equal(await body(page, 'Response').textContent(), SCRIPT, 'HTML is text')
  assert.equal(await detail(page).locator('script, iframe, img').count(), 0)

  await field(page, 'Search in everything').fill('needle')
  await until('only the match is listed', async () => (await rows(page).count()) === 1)
  await row(page, 'POST /orders').click()
  await part(page, 'Request').getByText('[masked]').waitFor()
  assert.equal(await page.getByText('top-secret').count(), 0, 'the key is masked')
  assert.match((await body(page, 'Request').textContent()) ?? '', /"item": "needle"/)
  await button(page, 'Clear search').click()

  await button(page, 'Edit').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Path and query').fill('/orders?coupon=summer')
  await dialog.getByLabel('Body').fill('{"item":"needle","count":2}')
  await dialog.getByRole('button', { name: 'Replay', exact: true }).click()
  await detail(page).getByText('Edited replay of').waitFor()
  const replayed = inspected.received.at(-1)
  assert.deepEqual(replayed, {
    url: '/orders?coupon=summer',
    body: '{"item":"needle","count":2}',
    authorization: 'Bearer top-secret',
  })

  await page.keyboard.press('c')
  const changes = page.getByRole('dialog').getByRole('region', { name: 'Differences: Body' })
  await changes.getByText(/coupon=spring/).waitFor()
  await changes.getByText(/coupon=summer/).waitFor()
  await page.keyboard.press('Escape')

  await page.keyboard.press('R')
  await until('the replay was replayed', () => inspected.received.length === 5)
  assert.deepEqual(inspected.received.at(-1), replayed)
  assert.equal(await page.title(), 'Requests · Adit')
})

test('a tab without a link, and one with a link that was used, get no requests', async (t) => {
  const { link, fetch } = await startSamples(t)
  const { page, context } = await openInspectorPage(t, link)
  await fetch({ path: '/secret' })
  await row(page, '/secret').waitFor()
  const other = await openPage(t, context)
  await other.page.goto(new URL('/', link).href)
  await other.page.getByRole('heading', { name: 'Open the inspector with its link' }).waitFor()
  await other.page.goto(link)
  await other.page.getByRole('heading', { name: 'This link was used before' }).waitFor()
  await other.page.getByText('adit requests link').waitFor()
  assert.ok(!(await other.page.content()).includes('/secret'))
  const status = await other.page.evaluate('fetch("/api/requests").then(({ status }) => status)')
  assert.equal(status, 401)
})
