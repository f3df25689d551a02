// Every page in both color schemes, on desktop and phone: no overflow and no serious accessibility violation.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openBrowser } from '../support/browser.ts'
import { serve } from '../support/server.ts'
import {
  button,
  checkPage,
  DESKTOP,
  field,
  NO_BROWSER,
  openPage,
  PHONE,
  seedWorkspaces,
  signInAs,
} from './harness.ts'

const privatePages: [name: string, path: string, heading: string | RegExp][] = [
  ['overview', '/w/acme', /./],
  ['keys', '/w/acme/keys?state=all', 'API keys'],
  ['usage', '/w/acme/usage?days=365', 'Usage'],
  ['members', '/w/acme/members', 'Members'],
  ['audit', '/w/acme/audit', 'Audit log'],
  ['account', '/account', 'Account'],
  ['fresh', '/w/fresh', /./],
  ['not-found', '/w/acme/nowhere', 'Page not found'],
  ['workspace-not-found', '/w/unknown', 'Workspace not found'],
]
const publicPages: [name: string, path: string][] = [
  ['sign-in', '/sign-in'],
  ['forgot-password', '/forgotten'],
  ['link-missing', '/link'],
  ['link-invalid', '/link#xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'],
]

for (const colorScheme of ['light', 'dark'] as const)
  test(`${colorScheme}: every page is accessible and fits the screen, on desktop and phone`, async (t) => {
    const browser = await openBrowser(t)
    if (!browser) return t.skip(NO_BROWSER)
    const server = await serve(t, { engine: 'sqlite' })
    const ann = await seedWorkspaces(server)
    for (const viewport of [DESKTOP, PHONE]) {
      const view = `${viewport.width}-${colorScheme}`
      const context = await browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' })
      const { page, errors } = await openPage(context)
      for (const [name, path] of publicPages) {
        // Through another document: a change of the fragment alone would not load the page.
        await page.goto('about:blank')
        await page.goto(server.url + path)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.waitForLoadState('networkidle')
        await checkPage(page, name, view)
      }
      await signInAs(context, server.url, ann)
      for (const [name, path, heading] of privatePages) {
        await page.goto(server.url + path)
        await page.getByRole('heading', { level: 1, name: heading }).waitFor()
        await page.waitForLoadState('networkidle')
        await checkPage(page, name, view)
      }
      await page.goto(`${server.url}/w/acme/keys`)
      await button(page, 'Create key').first().click()
      await field(page, 'Label').fill('deploy')
      await checkPage(page, 'keys-create', view)
      await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
      await page.getByTestId('raw-key').waitFor()
      await checkPage(page, 'keys-created', view)
      await button(page, 'Done').click()
      assert.deepEqual(errors, [])
      await context.close()
    }
  })
