// webpack-dev-server behind a tunnel.
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

/** Without the URL, the browser connects to the port of the local server, at the host of the tunnel. */
const PAGE_PORT = ['--client-web-socket-url', 'auto://0.0.0.0:0/ws']
const WEBPACK = '../node_modules/webpack-cli/bin/cli.js'
const command = (port: string) => ['node', WEBPACK, 'serve', '--port', port, ...PAGE_PORT]

test('webpack-dev-server rejects the host of a tunnel, and reloads modules with --host-header rewrite', {
  skip,
}, async (t) => {
  const app = await startApp(t, 'webpack', { command })
  const page = await openPage(t)
  for (const site of await openSites(t, app.port)) {
    const response = await page.goto(site.url)
    assert.equal(response?.status(), 403)
    assert.equal(await response?.text(), 'Invalid Host header')
    await assertAdvice(site, 'webpack-dev-server')
  }
  await assertAdviceLine(t, app.port, 'webpack-dev-server')
  for (const { url } of await openSites(t, app.port, REWRITE))
    await assertHotReload(await openPage(t), url, app, 'src/index.js')
})

test('webpack-dev-server that allows the host reloads modules through a tunnel', { skip }, async (t) => {
  const env = { ALLOWED_HOST: '.tunnels.example.test' }
  const app = await startApp(t, 'webpack', { command, env })
  const sites = await openSites(t, app.port)
  for (const site of sites) await assertHotReload(await openPage(t), site.url, app, 'src/index.js')
})
