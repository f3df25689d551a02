// Storybook, with the builder of Vite, behind a tunnel.
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
  type Site,
  browserMissing as skip,
} from '../support/frameworks/public-edge.ts'

const STORYBOOK = '../node_modules/storybook/dist/bin/dispatcher.js'
const command = (port: string) => ['node', STORYBOOK, 'dev', '--port', port, '--ci']

/** The story in the window of Storybook, and alone with hot reload. */
async function assertWorks(
  t: Parameters<typeof openPage>[0],
  sites: Site[],
  app: Awaited<ReturnType<typeof startApp>>,
): Promise<void> {
  for (const { url } of sites) {
    const page = await openPage(t)
    await page.goto(`${url}?path=/story/label--plain`)
    await page
      .frameLocator('iframe[title=storybook-preview-iframe]')
      .getByText(/^(first|second)$/)
      .waitFor()
    const story = `${url}iframe.html?id=label--plain&viewMode=story`
    await assertHotReload(await openPage(t), story, app, 'src/label.jsx')
  }
}

test('Storybook rejects the host of a tunnel, and reloads modules with --host-header rewrite', {
  skip,
}, async (t) => {
  const app = await startApp(t, 'storybook', { command })
  const page = await openPage(t)
  for (const site of await openSites(t, app.port)) {
    const response = await page.goto(site.url)
    assert.equal(response?.status(), 403)
    assert.equal(await response?.text(), 'Invalid host')
    await assertAdvice(site, 'Storybook')
  }
  await assertAdviceLine(t, app.port, 'Storybook')
  await assertWorks(t, await openSites(t, app.port, REWRITE), app)
})

test('Storybook that allows the host reloads modules through a tunnel', { skip }, async (t) => {
  const app = await startApp(t, 'storybook', { command, env: { ALLOWED_HOST: '.tunnels.example.test' } })
  await assertWorks(t, await openSites(t, app.port), app)
})
