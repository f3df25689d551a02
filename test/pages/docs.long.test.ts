// The API reference, in a real browser without internet access.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { serve } from '../support/api/server.ts'
import { type Chromium, openBrowser, test } from '../support/browser.ts'
import { simulateEdge } from '../support/edges/connected-edge.ts'
import { tunnelOf } from '../support/edges/open-tunnels.ts'
import { until } from '../support/until.ts'
import { findViolations, saveScreenshot } from './support/harness.ts'

interface View {
  api: 'v1' | 'workspace'
  variant: 'A' | 'B'
  width: number
  colorScheme: 'light' | 'dark'
}

const views: View[] = [
  { api: 'v1', variant: 'A', width: 1280, colorScheme: 'light' },
  { api: 'v1', variant: 'A', width: 360, colorScheme: 'dark' },
  { api: 'v1', variant: 'B', width: 360, colorScheme: 'light' },
  { api: 'workspace', variant: 'A', width: 1280, colorScheme: 'dark' },
  { api: 'workspace', variant: 'B', width: 1280, colorScheme: 'light' },
  { api: 'workspace', variant: 'A', width: 360, colorScheme: 'light' },
  { api: 'workspace', variant: 'A', width: 360, colorScheme: 'dark' },
]

/** How many operations are shown, which one is tried, and what its response has. */
const contents = {
  v1: { title: 'API', operations: { A: 6, B: 4 }, tried: /^Test Request.*\/workspace/, response: '"acme"' },
  workspace: {
    title: 'Workspace API',
    operations: { A: 7, B: 7 },
    tried: /^Test Request.*get \/tunnels\)$/,
    response: '"my-app"',
  },
}

/** Opens the page; `close` fails if it contacted another server or logged an error. */
async function openDocs(
  browser: Chromium,
  url: string,
  { width, colorScheme }: Pick<View, 'width' | 'colorScheme'>,
) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme })
  const page = await context.newPage()
  const external: string[] = []
  const errors: string[] = []
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:')) external.push(request.url())
  })
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
  page.on('pageerror', (error) => errors.push(String(error)))
  await page.goto(`${url}/docs`)
  await page.locator('h1').first().waitFor()
  await testButtons(page).first().waitFor()
  const close = async () => {
    assert.deepEqual(external, [])
    assert.deepEqual(errors, [])
    await context.close()
  }
  return { page, close }
}

async function assertAccessible(page: Page, exceptRules: string[] = []): Promise<void> {
  const counted = (await findViolations(page)).filter(({ id }) => !exceptRules.includes(id))
  const violations = counted.map(({ id, nodes }) => ({ id, first: nodes[0]?.html, of: nodes.length }))
  assert.deepEqual(violations, [])
}

const testButtons = (page: Page) => page.getByRole('button', { name: /^Test Request/ })

/** Operations are rendered as they come into view. */
async function scrollThrough(page: Page, operations: number): Promise<void> {
  await until(`${operations} operations are rendered`, async () => {
    await page.mouse.wheel(0, 900)
    return (await testButtons(page).count()) === operations
  })
  await page.evaluate('window.scrollTo(0, 0)')
}

/** Texts and code that are cut off at the right, or shortened. */
const CUT_OFF = `[...document.querySelectorAll('#reference .markdown-summary, #reference pre, #reference .tab-list')]
  .flatMap((part) => [part, part.parentElement])
  .filter((part) => part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1)
  .map((part) => part.textContent.trim().slice(0, 60))`

async function assertFits(page: Page, width: number): Promise<void> {
  assert.deepEqual(await page.evaluate(CUT_OFF), [])
  const overflow = (await page.evaluate('document.documentElement.scrollWidth - window.innerWidth')) as number
  assert.ok(overflow <= 0, `${overflow} px too wide at ${width}`)
}

for (const view of views) {
  const { api, variant, width, colorScheme } = view
  const { title, operations, tried, response } = contents[api]
  const name = `docs-${api}-${variant}-${width}-${colorScheme}`

  test(`${name}: lists the operations, is accessible, sends requests and contacts no other server`, async (t) => {
    const browser = await openBrowser(t)
    const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: variant } })
    await simulateEdge(t, server, 'fra-1', [tunnelOf(server)])
    const { page, close } = await openDocs(browser, server.url, view)
    const link = page.getByRole('link', { name: title, exact: true })
    if (api !== 'v1') await link.click()
    await page.locator('h1', { hasText: new RegExp(`^Adit ${title}$`, 'i') }).waitFor()
    assert.equal(await link.getAttribute('aria-current'), 'page')
    await testButtons(page).first().waitFor()
    assert.equal(await page.locator(`body.${colorScheme}-mode`).count(), 1)
    await scrollThrough(page, operations[variant])
    await assertFits(page, width)
    await assertAccessible(page)
    await saveScreenshot(page, name)

    await page.getByPlaceholder('Token').first().fill(server.key.token)
    await page.getByRole('button', { name: tried }).click()
    await page.getByRole('button', { name: /^Send/ }).first().click()
    await page.getByText(response).first().waitFor()
    await saveScreenshot(page, `${name}-response`)
    // The dialog has a main element of its own, and axe looks behind dialogs too.
    await assertAccessible(page, ['landmark-no-duplicate-main'])
    await close()
  })
}

test('/docs links to the dashboard', async (t) => {
  const browser = await openBrowser(t)
  const { url } = await serve(t, { engine: 'sqlite' })
  const { page } = await openDocs(browser, url, { width: 1280, colorScheme: 'light' })
  await page.getByRole('link', { name: 'Dashboard' }).click()
  await page.waitForURL(`${url}/sign-in`)
})

test('/docs runs no inline script, and its files are compressed and revalidated', async (t) => {
  const { url } = await serve(t, { engine: 'sqlite' })
  const response = await fetch(`${url}/docs`)
  assert.match(response.headers.get('content-security-policy') ?? '', /script-src 'self';/)
  const html = await response.text()
  const scripts = [...html.matchAll(/<script\b([^>]*)>([^<]*)/g)]
  assert.ok(scripts.length > 0)
  for (const [, attributes = '', content] of scripts) {
    assert.match(attributes, /src="docs\/\w+\.js"/)
    assert.equal(content, '')
  }
  const headers = { 'accept-encoding': 'gzip, deflate, br, zstd', 'cache-control': 'max-age=0' }
  const script = await fetch(`${url}/docs/scalar.js`, { headers })
  assert.equal(script.headers.get('content-encoding'), 'br')
  assert.equal(script.headers.get('cache-control'), 'no-cache')
  const etag = script.headers.get('etag') ?? ''
  await script.arrayBuffer()
  const again = await fetch(`${url}/docs/scalar.js`, { headers: { ...headers, 'if-none-match': etag } })
  assert.equal(again.status, 304)
})

test('behind a proxy that removes a path prefix, /docs finds its files', async (t) => {
  const { url } = await serve(t, { engine: 'sqlite', env: { ADIT_BASE_URL: 'https://example.com/adit' } })
  const html = await (await fetch(`${url}/docs`)).text()
  assert.match(html, /<base href="\/adit\/">/)
  const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = '']) => file).slice(1)
  assert.ok(files.length > 3)
  for (const file of files) assert.match(file, /^(?:docs[/?]|\.$)/)
})
