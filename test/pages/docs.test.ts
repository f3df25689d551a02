// The API reference, in a real browser without the internet.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { root } from '../support/process.ts'
import { serve } from '../support/server.ts'

const screenshots = join(root, 'screenshots')

const views = {
  A: [
    { width: 1280, colorScheme: 'light' },
    { width: 1280, colorScheme: 'dark' },
    { width: 360, colorScheme: 'light' },
    { width: 360, colorScheme: 'dark' },
  ],
  B: [{ width: 360, colorScheme: 'light' }],
} as const

for (const variant of ['A', 'B'] as const)
  test(`variant ${variant}: the reference is whole with nothing from elsewhere, on a desk and on a phone`, async (t) => {
    const browser = await openBrowser(t)
    if (!browser) return t.skip('no Chromium: install one to run this test')
    mkdirSync(screenshots, { recursive: true })
    const { url, key } = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    for (const { width, colorScheme } of views[variant]) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme })
      const page = await context.newPage()
      const elsewhere: string[] = []
      const complaints: string[] = []
      page.on('request', (request) => {
        if (!request.url().startsWith(url) && !request.url().startsWith('data:'))
          elsewhere.push(request.url())
      })
      page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
      page.on('pageerror', (error) => complaints.push(String(error)))
      await page.goto(`${url}/docs`)
      await page.waitForSelector('.opblock')
      const operations = await page.locator('.opblock .opblock-summary-path').allTextContents()
      assert.equal(operations.length, variant === 'A' ? 6 : 4)
      const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')
      assert.ok((overflow as number) <= 0, `${overflow} px too wide at ${width}`)
      await page.screenshot({
        path: join(screenshots, `docs-${variant}-${width}-${colorScheme}.png`),
        fullPage: true,
      })

      // Try it out: authorise, call, see the answer.
      await page.click('.btn.authorize')
      await page.fill('.modal-ux input', key.token)
      await page.click('.modal-ux .btn.authorize')
      await page.click('.modal-ux .btn-done')
      await page.click('.opblock-summary-control:has-text("/workspace")')
      await page.click('.execute')
      await page.waitForSelector('.live-responses-table')
      assert.match((await page.locator('.live-responses-table').textContent()) ?? '', /"slug": "acme"/)
      await page.screenshot({
        path: join(screenshots, `docs-${variant}-${width}-${colorScheme}-tried.png`),
        fullPage: true,
      })
      assert.deepEqual(elsewhere, [])
      assert.deepEqual(complaints, [])
      await context.close()
    }
  })

test('behind a proxy that takes a path off, the reference finds its files', async (t) => {
  const { url } = await serve(t, { engine: 'sqlite', env: { ADIT_BASE_URL: 'https://example.com/adit' } })
  const page = await (await fetch(`${url}/docs`)).text()
  const files = [...page.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = '']) => file)
  assert.ok(files.length > 3)
  for (const file of files) assert.match(file, /^(\/adit\/docs\/|data:|https:)/)
})
