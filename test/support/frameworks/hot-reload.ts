// Hot reload in a browser: a file changes, and the open page shows it without being loaded again.
import assert from 'node:assert/strict'
import type { Page, WebSocket } from 'playwright-core'
import type { App } from './apps.ts'

/** The page at `url` says `first` or `second`, from this file. */
export async function assertHotReload(page: Page, url: string, app: App, file: string): Promise<void> {
  const socket = await openWithSocket(page, url)
  // Clients of Vite connect to localhost if the address of the page fails: not what a visitor has.
  assert.equal(new URL(socket.url()).host, new URL(url).host)
  const before = await page.getByText(/^(first|second)$/).innerText()
  const change = before === 'first' ? 'second' : 'first'
  await page.evaluate('globalThis.isFirstLoad = true')
  app.edit(file, before, change)
  await page.getByText(change, { exact: true }).waitFor()
  assert.equal(await page.evaluate('globalThis.isFirstLoad'), true, 'the page was loaded again')
}

/** Loads the page until its WebSocket has received something. */
async function openWithSocket(page: Page, url: string): Promise<WebSocket> {
  const connected = page
    .waitForEvent('websocket')
    .then((socket) => socket.waitForEvent('framereceived').then(() => socket))
  const [socket] = await Promise.all([connected, page.goto(url)])
  return socket
}
