// `npm run dev`, as a contributor uses it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { button, DESKTOP, field, openPage } from '../pages/support/harness.ts'
import { PASSWORD } from '../support/accounts/users.ts'
import { openBrowser, test } from '../support/browser.ts'
import { atEnd } from '../support/cleanup.ts'
import { createDatabase } from '../support/databases/create.ts'
import { freePort, isListening } from '../support/processes/ports.ts'
import { root } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

test('the printed link creates an account and signs in, in a dashboard that Vite serves, and a signal stops all', async (t) => {
  const browser = await openBrowser(t)
  const env = {
    ...process.env,
    ADIT_PORT: String(await freePort()),
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
  }
  const dev = spawn(process.execPath, ['scripts/dev.ts'], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(dev, 'exit')
  atEnd(t, async () => {
    dev.kill()
    await exited
  })
  let link = ''
  for await (const line of createInterface(dev.stdout)) {
    link = /http\S+\/link#[\w-]{43}/.exec(line)?.[0] ?? ''
    if (link) break
  }
  const { page } = await openPage(t, await browser.newContext({ viewport: DESKTOP }))
  await page.goto(link)
  await field(page, 'Email').fill('ann@example.com')
  await field(page, 'Name').fill('Ann')
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Create account').click()
  await button(page, 'Account menu: Ann').click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await field(page, 'Email').fill('ann@example.com')
  await field(page, 'Password').fill(PASSWORD)
  await button(page, 'Sign in').click()
  await page.getByRole('heading', { level: 1, name: 'Default' }).waitFor()
  assert.ok(await page.locator('script[src*="@vite/client"]').count(), 'the page is served by Vite')
  // Its client would report the end of the connection as an error of the page.
  await page.close()
  dev.kill()
  await exited
  await until('the server has stopped', async () => !(await isListening(Number(env.ADIT_PORT))))
})
