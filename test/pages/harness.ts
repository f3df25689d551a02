// Helpers for tests of the dashboard in a real browser, against a real server.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { fillWithUsage } from '../../src/domain/demo.ts'
import { root } from '../support/process.ts'
import { addWorkspace, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { addMember, linkFor, type TestBrowser } from '../support/users.ts'

export const NO_BROWSER = 'no Chromium: install one to run this test'
export const DESKTOP = { width: 1280, height: 800 }
export const PHONE = { width: 360, height: 740 }

const screenshots = join(root, 'screenshots')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** `errors` collects uncaught exceptions and console errors of the page. */
export async function openPage(context: BrowserContext) {
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(String(error)))
  page.on('console', (message) => {
    // The browser also logs responses such as 401, which are expected.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      errors.push(message.text())
  })
  return { page, errors }
}

/** Gives the browser context the session of a test user. */
export const signInAs = (context: BrowserContext, url: string, { cookies }: Pick<TestBrowser, 'cookies'>) =>
  context.addCookies([...cookies].map(([name, value]) => ({ name, value, url })))

export const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' })

export const field = (page: Page, name: string) => page.getByLabel(name, { exact: true })

export const toast = (page: Page, text: string | RegExp) =>
  page.getByRole('status').filter({ hasText: text }).first()

export async function goTo(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { level: 1, name }).waitFor()
}

/** No horizontal overflow, no serious accessibility violation, and a screenshot to look at. */
export async function checkPage(page: Page, name: string, view: string): Promise<void> {
  // Waits, because components that depend on the viewport's width render a moment after it changes. The policy of the page
  // does not allow waitForFunction.
  await until(
    `${name} fits the width of ${view}`,
    () => page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'),
    2_000,
  )
  // Evaluated by the debugger, so that the Content-Security-Policy stays in force.
  await page.evaluate(axe)
  const found = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
    violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[]
  }
  const serious = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  assert.deepEqual(
    serious.map(({ id, nodes }) => `${name} ${view}: ${id} ${nodes[0]?.html} ${nodes[0]?.failureSummary}`),
    [],
  )
  mkdirSync(screenshots, { recursive: true })
  await page.screenshot({ path: join(screenshots, `dashboard-${name}-${view}.png`), fullPage: true })
}

/** An owner of a workspace with members, keys, an invitation and a year of usage, and of an empty workspace. */
export async function seedWorkspaces(server: TestServer) {
  const ann = await addMember(server, 'Ann', 'owner')
  await addMember(server, 'Bob', 'admin')
  await addMember(server, 'Alexandra-Konstantina', 'member')
  for (const label of ['ci', '', 'x'.padEnd(80, ' long label')])
    await ann.post('/workspaces/acme/keys', { label })
  await server.post('/tokens', { label: 'created by a key' })
  const { keys } = (await ann.get('/workspaces/acme/keys')).json
  await ann.remove(`/workspaces/acme/keys/${keys[2].id}`)
  await ann.post('/workspaces/acme/invitations', {
    email: 'somebody.with.a.long.name@subsidiary.example.com',
    role: 'member',
  })
  await fillWithUsage(server.services, server.workspace.id, 365, () => {})
  await addWorkspace(server, 'fresh')
  const link = await linkFor(server, ann.email, 'owner', 'fresh')
  await ann.post('/links/use', { link })
  return ann
}
