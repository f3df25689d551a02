// The inspector's page with as many requests as are kept, and more that arrive.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { LIMITS } from '../../../src/inspector/api.ts'
import { test } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { field } from '../support/harness.ts'
import { body, detail, openInspectorPage, row, rows, startSamples } from './support.ts'

type Samples = Awaited<ReturnType<typeof startSamples>>

const TOGETHER = 20

/** Requests to `/<name>/<number>` with bodies of up to some 10 KB. */
async function sendMany({ fetch }: Samples, name: string, count: number): Promise<void> {
  const send = (number: number) => {
    const items = Array.from({ length: number % 200 }, (_, sku) => ({ sku, note: 'some text of an item' }))
    const json = Buffer.from(JSON.stringify({ mark: `${name}-${number}-mark`, items }))
    const headers = { 'content-type': 'application/json' }
    return fetch({ method: 'POST', path: `/${name}/${number}`, headers, body: json })
  }
  for (let start = 0; start < count; start += TOGETHER)
    await Promise.all(Array.from({ length: TOGETHER }, (_, index) => send(start + index)))
}

const listed = (page: Page, count: number) =>
  until(`${count} are listed`, async () => (await rows(page).count()) === count)

/** Where a row is in the window. */
const position = async (page: Page, text: string) => (await row(page, text).boundingBox())?.y ?? Number.NaN

test('as many requests as are kept are listed, searched, and moved through by a held key', async (t) => {
  const samples = await startSamples(t)
  const { page } = await openInspectorPage(t, samples.link)
  await sendMany(samples, 'old', LIMITS.exchanges)
  await listed(page, LIMITS.exchanges)
  await sendMany(samples, 'new', 2 * TOGETHER)
  await until('the oldest made room', async () => (await row(page, '/old/').count()) === 460)
  await listed(page, LIMITS.exchanges)

  // Pressed again without being released is held.
  for (let pressed = 0; pressed < 100; pressed += 1) await page.keyboard.down('j')
  await page.keyboard.up('j')
  const hundredth = (await rows(page).nth(99).getAttribute('data-request')) ?? ''
  await until('the hundredth is selected', () => page.url().endsWith(`#${hundredth}`))
  await detail(page).getByText(hundredth, { exact: true }).waitFor()
  const box = await rows(page).nth(99).boundingBox()
  assert.ok(box && box.y > 0 && box.y < 800, 'it is in view')

  await field(page, 'Search in everything').fill('new-21-mark')
  await listed(page, 1)
  await row(page, '/new/21').waitFor()
  await field(page, 'Search in everything').fill('')
  await listed(page, LIMITS.exchanges)
})

test('what is read of a long list stays in place when requests arrive', async (t) => {
  const samples = await startSamples(t)
  const { page } = await openInspectorPage(t, samples.link)
  await sendMany(samples, 'old', 10 * TOGETHER)
  await listed(page, 10 * TOGETHER)
  const read = '/old/100'
  await row(page, read).scrollIntoViewIfNeeded()
  const before = await position(page, read)
  await sendMany(samples, 'new', 2 * TOGETHER)
  await listed(page, 12 * TOGETHER)
  const after = await position(page, read)
  assert.ok(Math.abs(after - before) < 5, `${before} and ${after}`)
})

test('a request that is evicted while it is shown stays, and says that it is no longer kept', async (t) => {
  const samples = await startSamples(t)
  const { page } = await openInspectorPage(t, samples.link)
  await sendMany(samples, 'first', TOGETHER)
  await row(page, '/first/7').click()
  await body(page, 'Request').getByText('first-7-mark').waitFor()
  await sendMany(samples, 'later', LIMITS.exchanges)
  await detail(page).getByText('No longer kept').waitFor()
  await body(page, 'Request').getByText('first-7-mark').waitFor()
  assert.equal(await detail(page).getByRole('button', { name: 'Replay' }).count(), 0)
  await page.reload()
  await detail(page).getByText('This request is no longer kept').waitFor()
})
