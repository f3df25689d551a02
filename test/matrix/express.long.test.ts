// Express behind a tunnel: redirects, cookies, forms, uploads and streams, in a browser.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { startApp } from '../support/frameworks/apps.ts'
import { assertEventStream } from '../support/frameworks/event-stream.ts'
import {
  openPage,
  openSites,
  REWRITE,
  type Site,
  browserMissing as skip,
} from '../support/frameworks/public-edge.ts'

interface Visit extends Site {
  page: Page
}

async function assertRedirects({ page, url }: Visit): Promise<void> {
  for (const path of ['relative', 'absolute']) {
    const response = await page.goto(url + path)
    assert.equal(response?.url(), url)
    assert.equal(await response?.text(), 'home')
  }
}

/** The form has a CSRF token, which the session must have too. */
async function assertForm({ page, url }: Visit, isCookieSecure: boolean): Promise<void> {
  await page.goto(`${url}form`)
  const [cookie] = await page.context().cookies(url)
  assert.equal(cookie?.secure, isCookieSecure)
  await page.locator('input[name=name]').fill('Ann')
  await page.getByRole('button').click()
  await page.getByText('Hello Ann').waitFor()
  const forged = `fetch('/form', { method: 'POST', body: new URLSearchParams({ token: 'x' }) })`
  assert.equal(await page.evaluate(`${forged}.then(({ status }) => status)`), 403)
}

async function assertUpload({ page, url }: Visit): Promise<void> {
  await page.goto(url)
  const uploaded = await page.evaluate(`(async () => {
    const body = new FormData()
    body.set('note', 'of Ann')
    body.set('file', new Blob(['upload'.repeat(1_000_000)]), 'file.bin')
    const response = await fetch('/upload', { method: 'POST', body })
    return response.json()
  })()`)
  const sha256 = createHash('sha256').update('upload'.repeat(1_000_000)).digest('hex')
  assert.deepEqual(uploaded, { sha256, note: 'of Ann' })
}

for (const flags of [[], REWRITE])
  test(`Express gets redirects, forms, uploads and streams through a tunnel right ${flags.join(' ') || 'without flags'}`, {
    skip,
  }, async (t) => {
    const app = await startApp(t, 'express', { command: () => ['node', 'server.js'] })
    for (const site of await openSites(t, app.port, flags)) {
      const visit = { ...site, page: await openPage(t) }
      await assertRedirects(visit)
      // With the flag, the local server does not learn that the visitor uses HTTPS.
      await assertForm(visit, site.scheme === 'https' && flags.length === 0)
      await assertUpload(visit)
      await assertEventStream(visit.page)
    }
  })
