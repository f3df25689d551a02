// The tunnels page: the live list, closing a tunnel, and hundreds of tunnels.
import assert from 'node:assert/strict'
import { serve } from '../../support/api/server.ts'
import { test } from '../../support/browser.ts'
import { sampleTunnel, simulateEdge, tcpSettings } from '../../support/edges/connected-edge.ts'
import { addTunnelEdge } from '../../support/edges/open-tunnels.ts'
import { until } from '../../support/until.ts'
import { button, checkEveryView, checkPage, goTo, toast, waitForFocus } from '../support/harness.ts'
import { openTunnelsPage, rows, samples } from '../support/tunnels-page.ts'

test('without open tunnels the page shows the commands that open one', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  const { page } = await openTunnelsPage(t, server)
  await page.getByRole('heading', { name: 'No open tunnels' }).waitFor()
  await page.getByText('No edge is connected').waitFor()
  assert.deepEqual(await page.locator('pre').allInnerTexts(), [
    `export ADIT_EDGE_KEY=$(adit admin edge create edge-1 --url http://127.0.0.1:8081)\nADIT_URL=${server.url} adit edge`,
    `curl -fsSL ${server.url}/install.sh | sh && export PATH="$HOME/.local/bin:$PATH"`,
    `adit login ${server.url}`,
    'adit tunnel 3000',
  ])
  await checkEveryView(page, 'tunnels-none')
  await page.getByRole('tab', { name: 'Edges' }).click()
  await page.getByRole('heading', { name: 'No edges' }).waitFor()
  await checkEveryView(page, 'tunnels-no-edges')
})

test('tunnels appear and change while the page is open, and an admin closes one', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  const edge = await simulateEdge(t, server, 'fra-1', samples(server, 4))
  const { page } = await openTunnelsPage(t, server)
  const row = rows(page).filter({ hasText: 'api-1.acme' })
  await row.waitFor()
  for (const text of ['HTTP', 'first', '192.0.2.1', 'adit/0.1.0', 'fra-1', '6 minutes ago', '7,919'])
    await row.getByText(text, { exact: true }).waitFor()
  await row.getByText('1 in progress').waitFor()
  await row.getByText('Password required · Only from 192.0.2.0/24, 2001:db8::/32').waitFor()
  await row.getByText('102 KiB in').waitFor()
  await row.getByText('14.8 MiB out').waitFor()
  const link = row.getByRole('link')
  assert.equal(await link.getAttribute('href'), 'https://api-1.acme.localhost')
  assert.equal(await link.getAttribute('rel'), 'noreferrer')
  await button(page, 'Copy ssh-3.acme.localhost:20003').click()
  await toast(page, 'Copied').waitFor()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'ssh-3.acme.localhost:20003')
  await page.getByText('Live', { exact: true }).waitFor()
  await checkEveryView(page, 'tunnels')

  edge.report({
    ...sampleTunnel(server, 4),
    name: 'new-one',
    url: 'https://new-one.acme.localhost',
  })
  await rows(page).filter({ hasText: 'new-one' }).waitFor({ timeout: 10_000 })
  await page.getByRole('tab', { name: 'Open 5' }).waitFor()

  const close = button(page, 'Close https://api-1.acme.localhost')
  await close.focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Close tunnel?' })
  await dialog.getByText('shows who closed the tunnel').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await waitForFocus(page, close)
  await close.click()
  await dialog.waitFor()
  await checkPage(page, 'tunnels-close', '1280-light')
  await dialog.getByRole('button', { name: 'Close tunnel' }).click()
  await toast(page, 'Tunnel https://api-1.acme.localhost closed.').waitFor()
  assert.equal(await row.count(), 0)
  const next = button(page, 'Close https://new-one.acme.localhost')
  await waitForFocus(page, next)

  await goTo(page, 'Audit log')
  await page.getByText('closed tunnel').waitFor()
  const log = (await page.getByRole('main').innerText()).replaceAll(/\s+/g, ' ')
  assert.match(log, /Ann closed tunnel api-1/)
})

test('a tunnel that its edge does not close is shown as closing; members cannot close tunnels', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  const edge = await addTunnelEdge(server, 'fra-1')
  const tunnels = samples(server, 2)
  await edge.sync({ changed: tunnels })
  const { page, context } = await openTunnelsPage(t, server)
  await button(page, 'Close https://web-0.acme.localhost').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Close tunnel' }).click()
  await toast(page, 'Edge fra-1 has not confirmed it yet.').waitFor()
  await rows(page).filter({ hasText: 'web-0' }).getByText('Closing', { exact: true }).waitFor()
  await checkPage(page, 'tunnels-closing', '1280-light')
  await button(page, 'Close https://api-1.acme.localhost').click()
  await edge.sync({ closed: tunnels.map(({ id }) => id).slice(1) })
  await page.getByRole('dialog').getByRole('button', { name: 'Close tunnel' }).click()
  await toast(page, 'is no longer listed: it was closed, or its edge is offline.').waitFor()
  await context.close()

  const asMember = await openTunnelsPage(t, server, { role: 'member' })
  await rows(asMember.page).filter({ hasText: 'web-0' }).waitFor()
  assert.equal(await button(asMember.page, /^Close /).count(), 0)
  await asMember.page.getByRole('tab', { name: 'Names' }).click()
  await asMember.page.getByRole('list', { name: 'Names' }).getByText('web-0').waitFor()
  for (const name of [/^Reserve/, /^Release/, /^Access rules/])
    assert.equal(await button(asMember.page, name).count(), 0)
})

test('300 tunnels are shown in pages, searched and ordered', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  await simulateEdge(t, server, 'fra-1', samples(server, 300))
  const { page } = await openTunnelsPage(t, server)
  await page.getByText('1–25 of 300').waitFor()
  assert.equal(await rows(page).count(), 25)
  await checkEveryView(page, 'tunnels-many')

  await button(page, 'Page 12').click()
  await page.getByText('276–300 of 300').waitFor()
  const firstRow = rows(page).first()
  await until('the first row is in view', async () => ((await firstRow.boundingBox())?.y ?? 0) > 0)
  const search = page.getByRole('searchbox', { name: 'Search tunnels' })
  await search.fill('ssh 20003')
  await until('one row', async () => (await rows(page).count()) === 1)
  await rows(page).getByText('TCP').waitFor()
  await search.fill('nothing like this')
  await page.getByRole('heading', { name: 'No matching tunnels' }).waitFor()
  await checkEveryView(page, 'tunnels-no-match')
  await button(page, 'Clear search').click()
  await page.getByText('1–25 of 300').waitFor()

  await page.getByRole('combobox', { name: 'Order' }).click()
  await page.getByRole('option', { name: 'Most requests' }).click()
  const most = samples(server, 300).toSorted((a, b) => b.requests - a.requests)[0]
  await rows(page)
    .first()
    .getByText(most?.name ?? '', { exact: true })
    .waitFor()
})
