// Tunnel names on the tunnels page: reserve, release, and access rules.
import assert from 'node:assert/strict'
import { createEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { operator, serve } from '../../support/api/server.ts'
import { test } from '../../support/browser.ts'
import { simulateEdge } from '../../support/edges/connected-edge.ts'
import { button, checkEveryView, goTo, toast, waitForFocus } from '../support/harness.ts'
import { openTunnelsPage, samples } from '../support/tunnels-page.ts'

test('names are reserved and released, and their access rules set and removed', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_TUNNEL_DOMAIN: 'example.test' } })
  await simulateEdge(t, server, 'fra-1', samples(server, 3))
  const { page } = await openTunnelsPage(t, server, { search: '?tab=names' })
  const row = (name: string) =>
    page.getByRole('list', { name: 'Names' }).getByRole('listitem').filter({ hasText: name })
  const dialog = page.getByRole('dialog')
  await row('api-1').getByText('1 open').waitFor()

  await button(page, 'Reserve name').click()
  const name = dialog.getByLabel('Name', { exact: true })
  await name.fill('my app')
  await dialog.getByText('Use only lower-case letters, digits and hyphens.').waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Reserve' }).isDisabled())
  await checkEveryView(page, 'names-reserve')
  await name.fill('my-app-')
  await dialog.getByRole('button', { name: 'Reserve' }).click()
  await dialog.getByText('Name must be lower-case letters, digits and hyphens between them').waitFor()
  await name.fill('My-App')
  await dialog.getByText('my-app.acme.example.test').waitFor()
  await page.keyboard.press('Enter')
  await toast(page, 'Name my-app reserved.').waitFor()
  await row('my-app').getByText('Reserved', { exact: true }).waitFor()
  await row('my-app').getByText('Not used yet').waitFor()
  await button(page, 'Copy http://my-app.acme.example.test').waitFor()
  await createEdge(server.services, operator, 'local', { url: 'http://127.0.0.1:9090' })
  await page.reload()
  await button(page, 'Copy http://my-app.acme.example.test:9090').waitFor()
  await page.getByText('1 of 100 names reserved').waitFor()

  await button(page, 'Release my-app').click()
  await toast(page, 'Name my-app released.').waitFor()
  await row('my-app').getByText('Reserved', { exact: true }).waitFor({ state: 'detached' })
  await waitForFocus(page, button(page, 'Reserve my-app'))

  await button(page, 'Access rules of api-1').click()
  await dialog.getByLabel('Require a user name and password').check()
  await dialog.getByLabel('User name', { exact: true }).fill('pre:view')
  await dialog.getByText('A user name cannot contain a colon.').waitFor()
  await dialog.getByLabel('User name', { exact: true }).fill('preview')
  await dialog.getByLabel('Password', { exact: true }).fill('short')
  await dialog.getByText('3 more needed').waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Save' }).isDisabled())
  await dialog.getByLabel('Password', { exact: true }).fill('e\u0301'.repeat(130))
  await dialog.getByText('2 characters too many').waitFor()
  await dialog.getByLabel('Password', { exact: true }).fill('tab\tinside')
  await dialog.getByText('A password cannot contain control characters').waitFor()
  await dialog.getByLabel('Password', { exact: true }).fill('correct horse')
  await dialog.getByLabel('Allowed networks').fill('10.0.0.0/8\n10.0.0.300\n192.0.2.7')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('“10.0.0.300” is not an IP address or network.').waitFor()
  await checkEveryView(page, 'names-rules')
  await dialog.getByLabel('Allowed networks').fill('10.0.0.0/8\n192.0.2.7')
  await dialog.getByLabel('Host header').fill('http://localhost:5173')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText(/must be "rewrite", or a host/i).waitFor()
  await dialog.getByLabel('Host header').fill('localhost:5173')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await toast(page, 'Access rules of api-1 saved.').waitFor()
  await row('api-1')
    .getByText('Password required, user preview · Only from 10.0.0.0/8, 192.0.2.7/32')
    .waitFor()
  await row('api-1').getByText('Host header: localhost:5173').waitFor()
  assert.equal(await button(page, 'Release api-1').count(), 0, 'a name with rules stays reserved')
  await checkEveryView(page, 'names')

  await button(page, 'Access rules of api-1').click()
  await dialog.getByText('Leave empty to keep the current password.').waitFor()
  await dialog.getByLabel('User name', { exact: true }).fill('guest')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await row('api-1').getByText('Password required, user guest').waitFor()
  await button(page, 'Access rules of api-1').click()
  await dialog.getByLabel('Require a user name and password').uncheck()
  await dialog.getByLabel('Allowed networks').fill('')
  await dialog.getByLabel('Host header').fill('')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await toast(page, 'Access rules of api-1 removed.').waitFor()
  await button(page, 'Release api-1').waitFor()

  await goTo(page, 'Audit log')
  await page.getByText('reserved tunnel name').first().waitFor()
  const log = (await page.getByRole('main').innerText()).replaceAll(/\s+/g, ' ')
  for (const entry of [
    'Ann reserved tunnel name my-app',
    'Ann released tunnel name my-app',
    'Ann changed the access rules of tunnel name api-1',
  ])
    assert.ok(log.includes(entry), `"${entry}" is missing in: ${log}`)
})
