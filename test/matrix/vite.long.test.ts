// Vite, with the settings of its template, behind a tunnel.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from '../support/frameworks/apps.ts'
import { assertHotReload } from '../support/frameworks/hot-reload.ts'
import {
  assertAdvice,
  assertAdviceLine,
  openPage,
  openSites,
  REWRITE,
  browserMissing as skip,
} from '../support/frameworks/public-edge.ts'

const vite = (...args: string[]) => ({
  command: (port: string) => ['node', '../node_modules/vite/bin/vite.js', '--port', port, ...args],
})

test('Vite rejects the host of a tunnel, and reloads modules with --host-header rewrite', {
  skip,
}, async (t) => {
  const app = await startApp(t, 'vite', vite())
  const page = await openPage(t)
  for (const site of await openSites(t, app.port)) {
    const response = await page.goto(site.url)
    assert.equal(response?.status(), 403)
    assert.match((await response?.text()) ?? '', /^Blocked request\. This host \("app-/)
    await assertAdvice(site, 'Vite')
  }
  await assertAdviceLine(t, app.port, 'Vite')
  for (const { url } of await openSites(t, app.port, REWRITE))
    await assertHotReload(await openPage(t), url, app, 'main.js')
})

test('Vite that allows the host reloads modules through a tunnel', { skip }, async (t) => {
  const app = await startApp(t, 'vite', vite('--config', 'allowed.config.js'))
  const sites = await openSites(t, app.port)
  for (const site of sites) await assertHotReload(await openPage(t), site.url, app, 'main.js')
})
