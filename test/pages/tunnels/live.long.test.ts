// Live state on the tunnels page and the overview: edges, polling, stale data, latest tunnels, a real tunnel.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { fillWithUsage } from '../../../src/server/domain/setup/demo.ts'
import { addEdge, serve } from '../../support/api/server.ts'
import { test } from '../../support/browser.ts'
import { createFolder } from '../../support/databases/create.ts'
import { sampleTunnel, simulateEdge, tcpSettings } from '../../support/edges/connected-edge.ts'
import { addTunnelEdge, expireLease } from '../../support/edges/open-tunnels.ts'
import { fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { button, checkEveryView, checkPage, field, toast } from '../support/harness.ts'
import { openTunnelsPage, rows, samples } from '../support/tunnels-page.ts'

test('edges are shown as online, offline or never connected, and a lost edge is announced', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  await simulateEdge(t, server, 'fra-1', samples(server, 2))
  const lost = await addTunnelEdge(server, 'ams-2')
  await lost.sync({ changed: [sampleTunnel(server, 2)] })
  await expireLease(server, lost.id)
  await addTunnelEdge(server, 'nyc-3')
  const { page } = await openTunnelsPage(t, server)
  await page.getByText('Edge ams-2 is offline').waitFor()
  await page.getByRole('tab', { name: 'Edges 3' }).click()
  const edge = (name: string) =>
    page.getByRole('list', { name: 'Edges' }).getByRole('listitem').filter({ hasText: name })
  await edge('fra-1').getByText('Online').waitFor()
  await edge('fra-1').getByText('2 tunnels').waitFor()
  await edge('fra-1').getByText('adit/0.1.0').waitFor()
  await edge('ams-2').getByText('Offline').waitFor()
  await edge('nyc-3').getByText('Never connected').waitFor()
  await checkEveryView(page, 'tunnels-edges')
  await page.reload()
  await edge('fra-1').waitFor()
})

test('the list is polled every 5 seconds while the page is visible, and says when it is out of date', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  await simulateEdge(t, server, 'fra-1', samples(server, 1))
  const { page, context } = await openTunnelsPage(t, server)
  await rows(page).first().waitFor()
  await page.clock.install()
  let requests = 0
  page.on('request', (request) => {
    if (request.url().endsWith('/tunnels') && request.resourceType() === 'fetch') requests += 1
  })
  await page.reload()
  await rows(page).first().waitFor()
  await until('loaded', () => requests === 1)
  await page.clock.runFor(5_100)
  await until('polled', () => requests === 2)
  const setVisibility = (state: string) =>
    page.evaluate(
      `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true }); document.dispatchEvent(new Event('visibilitychange')); window.dispatchEvent(new Event('visibilitychange'))`,
    )
  await setVisibility('hidden')
  await page.clock.runFor(60_000)
  assert.equal(requests, 2)
  await setVisibility('visible')
  await until('polled at once', () => requests >= 3)

  await page.getByText('Live', { exact: true }).waitFor()
  await context.route('**/dashboard/api/**', (route) =>
    route.fulfill({ status: 500, json: { error: 'internal' } }),
  )
  await page.clock.runFor(16_000)
  await page.getByText(/^Out of date: last updated .* UTC$/).waitFor()
  assert.equal(await rows(page).count(), 1, 'what was loaded stays')
  await checkPage(page, 'tunnels-stale', '1280-light')
  await context.unroute('**/dashboard/api/**')
  await page.clock.runFor(6_000)
  await page.getByText('Live', { exact: true }).waitFor()
})

test('the overview leads with the latest open tunnels and links to all of them', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  await fillWithUsage(server.services, server.workspace.id, 30, () => {})
  await simulateEdge(t, server, 'fra-1', samples(server, 7))
  const { page } = await openTunnelsPage(t, server)
  await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click()
  const latest = page.getByRole('list', { name: 'Latest tunnels' }).getByRole('listitem')
  await latest.first().waitFor()
  const headings = await page.getByRole('main').getByRole('heading').allInnerTexts()
  assert.deepEqual(headings.slice(0, 2), ['Acme', 'Open tunnels'])
  assert.equal(await latest.count(), 5)
  assert.match(await latest.first().innerText(), /web-0/)
  await page.locator('svg.recharts-surface').first().waitFor()
  await checkEveryView(page, 'overview-tunnels')
  await page.getByRole('link', { name: 'View all 7 tunnels' }).click()
  await page.getByRole('heading', { level: 1, name: 'Tunnels' }).waitFor()
})

test('access rules and the close button affect a real tunnel at a real edge', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: tcpSettings })
  const { token } = await addEdge(server, 'fra-1')
  const folder = join(createFolder(t), 'edge')
  const edge = await startTunnelEdge(t, {
    env: { ADIT_URL: server.url, ADIT_EDGE_KEY: token, ADIT_EDGE_FOLDER: folder },
  })
  const { port } = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key: server.key.token, port, name: 'app' })
  const { page } = await openTunnelsPage(t, server)
  await rows(page).filter({ hasText: tunnel.host }).waitFor()
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)

  await page.getByRole('tab', { name: 'Names' }).click()
  await button(page, 'Access rules of app').click()
  await field(page, 'Allowed networks').fill('203.0.113.0/24')
  await button(page, 'Save').click()
  await toast(page, 'Access rules of app saved.').waitFor()
  await until('requests are rejected', async () => (await fetchHost(edge, tunnel.host)).status === 403)

  await page.getByRole('tab', { name: 'Open' }).click()
  await button(page, /^Close http/).click()
  await button(page, 'Close tunnel').click()
  await toast(page, /^Tunnel .* closed\.$/).waitFor()
  await page.getByRole('heading', { name: 'No open tunnels' }).waitFor()
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 1)
  assert.match(stderr, /Ann closed/)
})
