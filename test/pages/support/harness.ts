// Helpers for tests of the dashboard in a real browser, against a real server.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { fillWithUsage } from '../../../src/server/domain/setup/demo.ts'
import { addMember, linkFor, type TestBrowser } from '../../support/accounts/users.ts'
import { addWorkspace, type TestServer } from '../../support/api/server.ts'
import { openBrowser } from '../../support/browser.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { root } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

export const DESKTOP = { width: 1280, height: 800 }
export const PHONE = { width: 360, height: 740 }
export const CLIPBOARD = { permissions: ['clipboard-read', 'clipboard-write'] }

const screenshots = join(root, 'screenshots')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * `errors` collects uncaught exceptions and console errors of the page; the test fails if there are some at
 * its end. The page has no animations, so that what a test waits for is fully drawn when it appears.
 */
export async function openPage(t: Test, context: BrowserContext) {
  const page = await context.newPage()
  await page.emulateMedia({ reducedMotion: 'reduce' })
  const errors: string[] = []
  atEnd(t, () => assert.deepEqual(errors, []))
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

/** In a window of its own, signed in as a test user. */
export async function openPageAs(
  t: Test,
  url: string,
  user: Pick<TestBrowser, 'cookies'>,
  options: BrowserContextOptions = {},
) {
  const context = await (await openBrowser(t)).newContext({ viewport: DESKTOP, ...options })
  await signInAs(context, url, user)
  return { context, ...(await openPage(t, context)) }
}

/** Opens this page of the dashboard as a test user. */
export async function visit(
  t: Test,
  { url }: Pick<TestServer, 'url'>,
  user: Pick<TestBrowser, 'cookies'>,
  path: string,
  options: BrowserContextOptions = {},
) {
  const { page } = await openPageAs(t, url, user, options)
  await page.goto(url + path)
  return page
}

export const button = (page: Page, name: string | RegExp) =>
  page.getByRole('button', { name, exact: typeof name === 'string' })

export const field = (page: Page, name: string) => page.getByLabel(name, { exact: true })

export const toast = (page: Page, text: string | RegExp) =>
  page.getByRole('status').filter({ hasText: text }).first()

export const waitForFocus = (page: Page, element: Locator) => element.and(page.locator(':focus')).waitFor()

export async function goTo(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { level: 1, name }).waitFor()
}

/**
 * The page on desktop and phone, in both color schemes. It is loaded once: it adapts to the viewport and the
 * scheme as it does for a user who changes them.
 */
export async function checkEveryView(page: Page, name: string): Promise<void> {
  for (const viewport of [DESKTOP, PHONE]) {
    await page.setViewportSize(viewport)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await until(`the page is ${colorScheme}`, () =>
        page.evaluate(`document.documentElement.dataset.mantineColorScheme === '${colorScheme}'`),
      )
      // Between the schemes only colors differ.
      const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined
      await checkPage(page, name, `${viewport.width}-${colorScheme}`, rules)
    }
  }
  await page.setViewportSize(DESKTOP)
  await page.emulateMedia({ colorScheme: 'light' })
}

/** No horizontal overflow, no serious violation of the accessibility rules, and a screenshot if wanted. */
export async function checkPage(page: Page, name: string, view: string, rules?: string[]): Promise<void> {
  // Waits, because components that depend on the viewport's width render a moment after it changes. The
  // policy of the page does not allow waitForFunction.
  await until(
    `${name} fits the width of ${view}`,
    () => page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'),
    2_000,
  )
  const serious = (await findViolations(page, rules)).filter(
    ({ impact }) => impact === 'serious' || impact === 'critical',
  )
  assert.deepEqual(
    serious.map(({ id, nodes }) => `${name} ${view}: ${id} ${nodes[0]?.html} ${nodes[0]?.failureSummary}`),
    [],
  )
  await saveScreenshot(page, `dashboard-${name}-${view}`, { fullPage: true })
}

interface Violation {
  id: string
  impact: string
  nodes: { html: string; failureSummary: string }[]
}

/** A fading element has too little contrast. The frames are for transitions that begin in the next one. */
const ANIMATIONS_ENDED = `(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done))
  const ends = ({ effect, playState }) =>
    playState === 'running' && effect.getComputedTiming().endTime !== Infinity
  for (;;) {
    await frame()
    await frame()
    const running = document.getAnimations().filter(ends)
    if (running.length === 0) return
    await Promise.allSettled(running.map((animation) => animation.finished))
  }
})()`

/** All rules of axe, or some. */
export async function findViolations(page: Page, rules?: string[]): Promise<Violation[]> {
  await page.evaluate(ANIMATIONS_ENDED)
  // Evaluated by the debugger, so that the Content-Security-Policy stays in force.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(axe)
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })
  const found = (await page.evaluate(`axe.run(document, ${options})`)) as { violations: Violation[] }
  return found.violations
}

/** Only on request, because encoding the images takes as long as the tests. */
export async function saveScreenshot(page: Page, name: string, options: { fullPage?: boolean } = {}) {
  if (!process.env.SCREENSHOTS) return
  mkdirSync(screenshots, { recursive: true })
  await page.screenshot({ path: join(screenshots, `${name}.png`), ...options })
}

/**
 * An owner of a workspace with members, keys, an invitation and a year of usage, and of an empty workspace.
 */
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
  await ann.post('/links/redeem', { link })
  return ann
}
