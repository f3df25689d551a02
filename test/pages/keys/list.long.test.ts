// API keys in the dashboard: expiry, rotation and search.
import assert from 'node:assert/strict'
import { DAY_MS } from '../../../src/lib/time.ts'
import { serveWithOwner } from '../../support/accounts/users.ts'
import { test } from '../../support/browser.ts'
import { addRows } from '../../support/databases/rows.ts'
import { until } from '../../support/until.ts'
import { button, checkEveryView, field, openPageAs, toast, visit } from '../support/harness.ts'

test('a key is created with an expiry, and then listed as expired', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const soon = new Date(Date.now() + 1_000).toISOString()
  const { expiresAt } = (await ann.post('/workspaces/acme/keys', { label: 'old', expiresAt: soon })).json
  const page = await visit(t, server, ann, '/w/acme/keys?create')

  await field(page, 'Label').fill('laptop')
  await field(page, 'Expires').selectOption('On a date')
  const day = new Date(Date.now() + 20 * 24 * 60 * 60 * 1000).toISOString().slice(0, 10)
  await field(page, 'Last day').fill(day)
  await checkEveryView(page, 'keys-create-expiry')
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
  await page
    .getByRole('dialog')
    .getByText(/Expires in \d+ days/)
    .waitFor()
  await button(page, 'Done').click()
  await page
    .getByRole('row', { name: /laptop/ })
    .getByText(/Expires in 2[01] days/)
    .waitFor()

  await until('the other one has expired', () => Date.now() >= Date.parse(expiresAt))
  await page.getByRole('radiogroup', { name: 'Filter by status' }).getByText('Expired').click()
  const row = page.getByRole('row', { name: /old/ })
  await row.getByText('Expired', { exact: true }).waitFor()
  assert.equal(await row.getByRole('button', { name: /Revoke/ }).count(), 0)
  await checkEveryView(page, 'keys-expired')
})

test('a key is rotated, and listed with its successor, until the old one is revoked', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const old = (await ann.post('/workspaces/acme/keys', { label: 'ci' })).json
  await ann.post('/workspaces/acme/keys', { label: 'laptop' })
  await server.call('GET', '/workspace', { key: old.token })
  const { page } = await openPageAs(t, server.url, ann)
  const urls: string[] = []
  page.on('request', (request) => urls.push(request.url()))
  await page.goto(`${server.url}/w/acme/keys`)

  await button(page, 'Rotate ci').click()
  await field(page, 'Keep the old key valid for').selectOption('7 days')
  await checkEveryView(page, 'keys-rotate')
  await button(page, 'Rotate key').click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText(/The old key expires in 7 days/).waitFor()
  const token = (await dialog.getByTestId('raw-key').textContent()) ?? ''
  assert.notEqual(token, old.token)
  await button(page, 'Done').click()

  const replaced = page.getByRole('row', { name: /ci: Replaced key/ })
  await replaced.getByText(`adit_…${old.token.slice(-4)}`).waitFor()
  await replaced.getByText(/Expires in 7 days/).waitFor()
  await page
    .getByRole('row', { name: /^ci adit/ })
    .getByText(`adit_…${token.slice(-4)}`)
    .waitFor()
  await checkEveryView(page, 'keys-lineage')

  const search = page.getByRole('searchbox', { name: 'Search API keys' })
  await search.fill(old.token)
  await page.getByRole('row', { name: /laptop/ }).waitFor({ state: 'detached' })
  await page.getByText(`Replaced by adit_…${token.slice(-4)}`).waitFor()
  await search.fill('nothing')
  await page.getByText('No matching keys').waitFor()
  await checkEveryView(page, 'keys-no-match')
  await button(page, 'Clear search').click()
  assert.ok(!urls.some((url) => url.includes(old.token)), 'a pasted key is not sent')

  await button(page, 'Revoke ci (replaced)').click()
  await button(page, 'Revoke key').click()
  await toast(page, /revoked/).waitFor()
  await replaced.waitFor({ state: 'detached' })
  assert.equal((await server.call('GET', '/workspace', { key: old.token })).status, 401)
  assert.equal((await server.call('GET', '/workspace', { key: token })).status, 200)
})

test('owners are told on the overview which keys expire soon, until those are rotated', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const expiresAt = new Date(Date.now() + 5 * DAY_MS).toISOString()
  const { id } = (await ann.post('/workspaces/acme/keys', { label: 'ci', expiresAt })).json
  const notice = { kind: 'key-expiry', subject_id: id, dedup_key: '7d', workspace_id: server.workspace.id }
  await addRows(server.services, 'notices', { ...notice, created_at: 1, digest_id: null })
  const page = await visit(t, server, ann, '/w/acme')
  const alert = page.getByRole('alert').filter({ hasText: 'An API key expires soon' })
  await alert.getByText(/ci, adit_….{4}: in 5 days/).waitFor()
  await checkEveryView(page, 'overview-expiring-keys')
  await alert.getByRole('link', { name: 'Rotate' }).click()
  await checkEveryView(page, 'keys-expiring')
  await button(page, 'Rotate ci').click()
  await button(page, 'Rotate key').click()
  await button(page, 'Done').click()
  await alert.waitFor({ state: 'detached' })
})
