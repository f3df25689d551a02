// Rails behind a tunnel, with the host authorization of its development mode.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { startApp } from '../support/frameworks/apps.ts'
import { assertForms } from '../support/frameworks/forms.ts'
import {
  assertAdvice,
  assertAdviceLine,
  browserMissing,
  openPage,
  openSites,
  REWRITE,
} from '../support/frameworks/public-edge.ts'

const hasRails = spawnSync('ruby', ['-e', 'require "rails"; require "puma"']).status === 0
const skip = hasRails ? browserMissing : 'Rails is not installed here (apt-get install ruby-railties puma)'

const rails = (env: Record<string, string> = {}) => ({
  command: (port: string) => ['puma', '--bind', `tcp://127.0.0.1:${port}`],
  env: { RAILS_ENV: 'development', ...env },
})

test('Rails rejects the host of a tunnel, and accepts forms with --host-header rewrite', {
  skip,
}, async (t) => {
  const { port } = await startApp(t, 'rails', rails())
  const page = await openPage(t)
  for (const site of await openSites(t, port)) {
    assert.equal((await page.goto(site.url))?.status(), 403)
    await page.getByRole('heading', { name: 'Blocked host: app-' }).waitFor()
    await assertAdvice(site, 'Rails')
  }
  await assertAdviceLine(t, port, 'Rails')
  await assertForms(t, await openSites(t, port, REWRITE))
})

test('Rails that allows the host accepts forms through a tunnel', { skip }, async (t) => {
  await assertForms(t, await openSites(t, (await startApp(t, 'rails', rails({ BEHIND_TUNNEL: '1' }))).port))
})
