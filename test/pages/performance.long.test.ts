// Size and caching of the first load, and how long drawing a year of usage blocks the main thread.
import assert from 'node:assert/strict'
import { serve } from '../support/api/server.ts'
import { test } from '../support/browser.ts'
import { goTo, openPageAs, seedWorkspaces } from './support/harness.ts'

/** A fixed amount of work, and its duration on an idle machine: measurements are scaled by the ratio. */
const CALIBRATION =
  '(() => { const t = performance.now(); let x = 0; for (let i = 0; i < 5e7; i++) x += i % 7; return performance.now() - t + (x < 0 ? 1 : 0) })()'
const CALIBRATION_MS = 115
const LONG_TASK_MAX_MS = 200

test('the first load is small, its files are cached for a year, and a year of usage draws without a long task', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const ann = await seedWorkspaces(server)
  const { page } = await openPageAs(t, server.url, ann)
  let scriptBytes = 0
  page.on('response', async (response) => {
    if (response.request().resourceType() !== 'script') return
    const {
      'content-length': length,
      'content-encoding': encoding,
      'cache-control': caching,
    } = response.headers()
    assert.ok(encoding === 'br' || encoding === 'gzip', `${response.url()} is not compressed`)
    assert.match(caching ?? '', /max-age=31536000.*immutable/)
    scriptBytes += Number(length)
  })
  await page.goto(`${server.url}/w/acme/keys`)
  await page.getByRole('row', { name: /^first/ }).waitFor()
  await page.waitForLoadState('networkidle')
  assert.ok(scriptBytes > 10_000 && scriptBytes < 350_000, `${scriptBytes} bytes of script`)
  const firstLoadBytes = scriptBytes
  // Measures drawing, not startup: navigates from another page of the dashboard. The best of several rounds,
  // because other tests run at the same time.
  await page.addInitScript(
    'window.__long = []; new PerformanceObserver((list) => window.__long.push(...list.getEntries().map((e) => e.duration)))' +
      '.observe({ type: "longtask" })',
  )
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 6 && best > LONG_TASK_MAX_MS; round++) {
    const load = ((await page.evaluate(CALIBRATION)) as number) / CALIBRATION_MS
    await page.goto(`${server.url}/w/acme/keys`)
    await page.getByRole('row', { name: /^first/ }).waitFor()
    await page.waitForTimeout(1_500)
    await page.evaluate('window.__long.length = 0')
    await goTo(page, 'Usage')
    await page.getByText('365 days').click()
    await page.waitForURL(/days=365/)
    await page.locator('svg.recharts-surface').nth(2).waitFor()
    await page.waitForTimeout(700)
    const longest = Math.max(0, ...((await page.evaluate('window.__long')) as number[]))
    best = Math.min(best, longest / Math.max(1, load))
  }
  t.diagnostic(
    `first load: ${firstLoadBytes} bytes of script; longest task of drawing: ${Math.round(best)} ms`,
  )
  assert.ok(best <= LONG_TASK_MAX_MS, `${best} ms`)
})
