// The development server of Next behind a tunnel.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { type App, startApp } from '../support/frameworks/apps.ts'
import { assertHotReload } from '../support/frameworks/hot-reload.ts'
import {
  assertAdvice,
  assertAdviceLine,
  openPage,
  openSites,
  REWRITE,
  type Site,
  browserMissing as skip,
} from '../support/frameworks/public-edge.ts'

const command = (port: string) => ['node', '../node_modules/next/dist/bin/next', 'dev', '--port', port]

const hotReload = {
  path: '/_next/webpack-hmr',
  headers: { connection: 'Upgrade', upgrade: 'websocket', origin: 'http://app.tunnels.example.test' },
}

async function assertServerAction(page: Page, name: string): Promise<void> {
  await page.locator('input[name=name]').fill(name)
  await page.getByRole('button', { name: 'Add' }).click()
  await page.locator('output', { hasText: name }).waitFor()
}

async function assertWorks(page: Page, { url, scheme }: Site, app: App): Promise<void> {
  await assertHotReload(page, url, app, 'app/page.jsx')
  await assertServerAction(page, `bob by ${scheme}`)
}

test('Next runs server actions through a tunnel, and reloads modules with --host-header rewrite', {
  skip,
}, async (t) => {
  const app = await startApp(t, 'next', { command })
  for (const site of await openSites(t, app.port)) {
    const page = await openPage(t)
    // Next rejects the WebSocket of hot reload without an HTTP response.
    const failed = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('socketerror'))
    await page.goto(site.url)
    assert.match(String(await failed), /502/)
    await assertAdvice(site, 'Next')
    await assertServerAction(page, `ann by ${site.scheme}`)
  }
  await assertAdviceLine(t, app.port, 'Next', hotReload)
  for (const site of await openSites(t, app.port, REWRITE)) await assertWorks(await openPage(t), site, app)
})

test('Next that allows the origin reloads modules through a tunnel', { skip }, async (t) => {
  const app = await startApp(t, 'next', { command, env: { ALLOWED_ORIGIN: '**.tunnels.example.test' } })
  const sites = await openSites(t, app.port)
  for (const site of sites) await assertWorks(await openPage(t), site, app)
})
