// A browser page at the origin of a server, with a script of the test instead of the dashboard's.
import type { Page } from 'playwright-core'
import { hasBrowser, openBrowser } from '../support/browser.ts'
import type { Test } from '../support/cleanup.ts'

/** Undefined if no browser is available. */
export async function openPage(t: Test, origin: string, script: string): Promise<Page | undefined> {
  if (!hasBrowser) return undefined
  const page = await (await (await openBrowser(t)).newContext()).newPage()
  const url = `${origin}/test-page`
  const body = `<!doctype html><script type="module">${script}</script>`
  await page.route(url, (route) => route.fulfill({ contentType: 'text/html', body }))
  await page.goto(url)
  return page
}
