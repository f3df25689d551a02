// The pages of an edge for requests that the access rules of a tunnel reject.
import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { openBrowser, test } from '../../support/browser.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { openTunnel } from '../../support/edges/tunnels.ts'
import { checkPage, DESKTOP, openPage, PHONE } from '../support/harness.ts'

const USER = { username: 'ann', password: 'correct horse' }

/**
 * Chromium shows the page of a 401 once its sign-in dialog is canceled. Some versions have no dialog if
 * headless.
 */
async function cancelSignInDialogs(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page)
  session.on('Fetch.requestPaused', ({ requestId }) => session.send('Fetch.continueRequest', { requestId }))
  session.on('Fetch.authRequired', ({ requestId }) =>
    session.send('Fetch.continueWithAuth', {
      requestId,
      authChallengeResponse: { response: 'CancelAuth' },
    }),
  )
  await session.send('Fetch.enable', { handleAuthRequests: true })
}

test('rejections are readable on desktop and phone, light and dark, and a browser can sign in', async (t) => {
  const browser = await openBrowser(t)
  // Browsers resolve names under localhost to this machine.
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'], { ADIT_TUNNEL_DOMAIN: 'localhost' })
  const options = { edge, key: keys[0] as string, port: local.port }
  const password = await openTunnel(t, {
    ...options,
    name: 'password',
    env: { ADIT_TUNNEL_BASIC_AUTH: `${USER.username}:${USER.password}` },
  })
  const office = await openTunnel(t, { ...options, name: 'office', flags: ['--allow-ip', '10.0.0.0/8'] })
  const from = { 'x-forwarded-for': '2001:db8:1234:5678:9abc:def0:1234:5678' }
  const { page } = await openPage(t, await browser.newContext({ extraHTTPHeaders: from }))
  await cancelSignInDialogs(page)
  for (const [name, url, heading] of [
    ['401', password.url, 'Sign in to continue'],
    ['403', office.url, 'Access denied'],
  ] as const) {
    const response = await page.goto(url)
    assert.equal(response?.status(), Number(name))
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
    for (const viewport of [DESKTOP, PHONE])
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize(viewport)
        await page.emulateMedia({ colorScheme })
        await checkPage(page, `tunnel-${name}`, `${viewport.width}-${colorScheme}`)
      }
  }
  await page.getByText(from['x-forwarded-for']).waitFor()
  const signedIn = await openPage(t, await browser.newContext({ httpCredentials: USER }))
  assert.equal((await signedIn.page.goto(password.url))?.status(), 200)
  assert.equal(local.requests.at(-1)?.headers.authorization, undefined)
})
