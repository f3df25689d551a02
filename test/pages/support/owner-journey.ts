// From the setup link to a revoked key, on a server of its own.
import assert from 'node:assert/strict'
import { PASSWORD } from '../../support/accounts/users.ts'
import { caller } from '../../support/api/server.ts'
import { openBrowser } from '../../support/browser.ts'
import type { Test } from '../../support/cleanup.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'
import { button, DESKTOP, field, goTo, openPage, toast } from './harness.ts'

const LABEL = '<img src=x onerror=alert(1)>'

export async function runOwnerJourney(t: Test, variant: 'A' | 'B'): Promise<void> {
  const browser = await openBrowser(t)
  const env = {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_API_VARIANT: variant,
    ADIT_LOG_LEVEL: 'trace',
  }
  const serving = await startServing(t, env)
  const { setupLink } = JSON.parse((await serving.waitFor(/^\{.*\}$/m))[0])
  const context = await browser.newContext({ viewport: DESKTOP })
  const { page } = await openPage(t, context)
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

  const { stderr } = await serving.stop()
  for (const secret of [key, PASSWORD, setupLink.split('#')[1]])
    assert.ok(!stderr.includes(secret), 'a secret is in the log')
}
