// Every view of the inspector's page on desktop and phone, light and dark: its width, and the rules of axe.
import { test } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { button, checkEveryView, field } from '../support/harness.ts'
import { detail, openInspectorPage, row, startSamples } from './support.ts'

test('every view of the inspector fits desktop and phone and is accessible, light and dark', async (t) => {
  const { link, fetch, tunnel, sendEvent } = await startSamples(t)
  const { page } = await openInspectorPage(t, link)
  const dialog = page.getByRole('dialog')
  const close = async () => {
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  }
  const check = (name: string) => checkEveryView(page, `inspector-${name}`)

  await page.getByText('No requests yet').waitFor()
  await check('empty')

  const secret = { authorization: 'Bearer top-secret', 'x-long': 'abcdefghij'.repeat(40) }
  for (const path of [
    '/html',
    '/image',
    '/binary',
    '/missing',
    '/error',
    '/json',
    `/${'long-path/'.repeat(30)}`,
  ])
    await fetch({ path })
  const body = Buffer.from(JSON.stringify({ item: 'needle', list: [1, 2], text: 'word '.repeat(60) }))
  await fetch({ method: 'POST', path: '/orders', headers: secret, body })
  await row(page, 'POST /orders').waitFor()
  await check('list')

  await button(page, 'Filter').click()
  await field(page, 'Status').fill('40')
  await page.getByText('Use 404, 4xx').waitFor()
  await check('filter')
  await field(page, 'Status').fill('404')
  await field(page, 'Path contains').fill('nothing')
  await page.getByText('No request matches').waitFor()
  await check('no-match')
  await button(page, 'Clear search and filter').click()
  await button(page, 'Filter').click()

  await row(page, '/image').click()
  await detail(page).getByRole('img').waitFor()
  await check('image')
  await page.keyboard.press('Escape')
  await row(page, '/binary').click()
  await detail(page)
    .getByText(/^00000000/)
    .waitFor()
  await check('hex')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')
  void fetch({ path: '/events' }).catch(() => undefined)
  await row(page, '/events').click()
  await until('the stream is open', async () => {
    sendEvent(`{"price": ${'1234567890'.repeat(20)}}`)
    return (await detail(page).getByText('tick').count()) > 2
  })
  await check('messages')
  await page.keyboard.press('Escape')
  await row(page, '/orders').click()
  await detail(page).getByText('[masked]').waitFor()
  await check('json')
  await page.keyboard.press('r')
  await detail(page).getByText('Replay of').waitFor()

  await page.keyboard.press('e')
  await dialog.getByLabel('Body').waitFor()
  await check('edit')
  await close()
  await page.keyboard.press('c')
  await dialog.getByRole('region', { name: 'Body', exact: true }).waitFor()
  await check('compare')
  await close()
  await button(page, 'More actions').click()
  await page.getByRole('menuitem', { name: 'Check webhook signature' }).click()
  await dialog.getByLabel('Signing secret').fill('whsec_x')
  await dialog.getByRole('button', { name: 'Check signature' }).click()
  await dialog.getByText('The signature is not valid').waitFor()
  await check('signature')
  await close()
  await page.keyboard.press('?')
  await dialog.getByText('Next request').waitFor()
  await check('keys')
  await close()

  await row(page, '/missing').click()
  await detail(page).getByText('There is no such page.').waitFor()
  tunnel.child.kill('SIGTERM')
  await tunnel.ended
  await page.getByText('The tunnel client has ended').waitFor()
  await check('disconnected')
})

test('the page without access says how to get it, on desktop and phone, light and dark', async (t) => {
  const { link } = await startSamples(t)
  const { page } = await openInspectorPage(t, new URL('/', link).href)
  await page.getByText('adit requests link').waitFor()
  await checkEveryView(page, 'inspector-no-link')
})
