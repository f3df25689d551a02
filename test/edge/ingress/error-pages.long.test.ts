// The error pages of the edge, in a real browser.
import assert from 'node:assert/strict'
import { type CauseCode, causes } from '../../../src/edge/error-responses/causes.ts'
import { sendError } from '../../../src/edge/ingress/responses.ts'
import { checkPage, DESKTOP, openPage, PHONE } from '../../pages/support/harness.ts'
import { openBrowser, test } from '../../support/browser.ts'
import { startHttp } from '../../support/edges/tunneled.ts'

const LONG_DETAIL = `The host of the request is ${'very-long-name.'.repeat(16)}example.com.`

test('error pages fit, are accessible, and load nothing', async (t) => {
  const browser = await openBrowser(t)
  const { port } = await startHttp(t, (request, response) =>
    sendError(response, { cause: request.url?.slice(1) as CauseCode, detail: LONG_DETAIL }),
  )
  const context = await browser.newContext()
  const { page, errors } = await openPage(t, context)
  const requested: string[] = []
  page.on('request', (request) => requested.push(new URL(request.url()).pathname.slice(1)))
  for (const code of Object.keys(causes)) {
    await page.goto(`http://127.0.0.1:${port}/${code}`)
    for (const viewport of [DESKTOP, PHONE])
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize(viewport)
        await page.emulateMedia({ colorScheme })
        await checkPage(page, `error-${code}`, `${viewport.width}-${colorScheme}`)
      }
  }
  assert.deepEqual(requested, Object.keys(causes))
  assert.deepEqual(errors, [])
})
