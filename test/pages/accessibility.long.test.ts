// Every page in both color schemes, on desktop and phone: no overflow and no serious accessibility violation.
import { serve } from '../support/api/server.ts'
import { openBrowser, test } from '../support/browser.ts'
import {
  button,
  checkEveryView,
  DESKTOP,
  field,
  openPage,
  seedWorkspaces,
  signInAs,
} from './support/harness.ts'

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
  ['forgot-password', '/forgot-password'],
  ['link-missing', '/link'],
  ['link-invalid', '/link#xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'],
]

test('every page is accessible and fits the screen, on desktop and phone, light and dark', async (t) => {
  const browser = await openBrowser(t)
  const server = await serve(t, { engine: 'sqlite' })
  const ann = await seedWorkspaces(server)
  const context = await browser.newContext({ viewport: DESKTOP })
  const { page } = await openPage(t, context)
  for (const [name, path] of publicPages) {
    // Through another document: a change of the fragment alone would not load the page.
    await page.goto('about:blank')
    await page.goto(server.url + path)
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.waitForLoadState('networkidle')
    await checkEveryView(page, name)
  }
  await signInAs(context, server.url, ann)
  for (const [name, path, heading] of privatePages) {
    await page.goto(server.url + path)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    await page.waitForLoadState('networkidle')
    await checkEveryView(page, name)
  }
  await page.goto(`${server.url}/w/acme/keys`)
  await button(page, 'Create key').first().click()
  await field(page, 'Label').fill('deploy')
  await checkEveryView(page, 'keys-create')
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
  await page.getByTestId('raw-key').waitFor()
  await checkEveryView(page, 'keys-created')
  await button(page, 'Done').click()
})
