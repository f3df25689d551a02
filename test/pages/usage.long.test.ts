// The usage page: weekly charts, the CSV export, and what it shows without traffic.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fillWithUsage } from '../../src/server/domain/setup/demo.ts'
import { byWeek } from '../../web/src/usage/weeks.ts'
import { serveWithOwner } from '../support/accounts/users.ts'
import { test as browserTest } from '../support/browser.ts'
import { setRows } from '../support/databases/rows.ts'
import { button, checkEveryView, visit } from './support/harness.ts'

const DAY_MS = 86_400_000

test('weeks start on Monday, add up totals and keep the highest peak', () => {
  // A Saturday.
  const start = Date.parse('2026-11-14T00:00:00.000Z')
  const series = Array.from({ length: 12 }, (_, index) => ({
    day: new Date(start + index * DAY_MS).toISOString(),
    requests: 10n ** BigInt(index),
    bytesIn: index,
    bytesOut: 2 * index,
    peakTunnels: [3, 9, 1, 8, 2, 2, 2, 2, 2, 4, 7, 5][index] ?? 0,
  }))
  assert.deepEqual(byWeek(series), [
    { day: '2026-11-09T00:00:00.000Z', requests: 11, bytesIn: 1, bytesOut: 2, peakTunnels: 9 },
    { day: '2026-11-16T00:00:00.000Z', requests: 111_111_100, bytesIn: 35, bytesOut: 70, peakTunnels: 8 },
    { day: '2026-11-23T00:00:00.000Z', requests: 111_000_000_000, bytesIn: 30, bytesOut: 60, peakTunnels: 7 },
  ])
})

browserTest('a year is drawn by week, 90 days by day, and a point shows the sum of its week', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await fillWithUsage(server.services, server.workspace.id, 365, () => {})
  const page = await visit(t, server, ann, '/w/acme/usage?days=90')
  await page.getByRole('heading', { name: 'Requests per day' }).waitFor()

  await page.goto(`${server.url}/w/acme/usage?days=365`)
  await page.getByRole('heading', { name: 'Peak tunnels per week' }).waitFor()
  const { series } = (await ann.get('/workspaces/acme/usage?days=365')).json
  const weeks = byWeek(series)
  assert.ok(weeks.length === 53 || weeks.length === 54)
  const chart = page.getByRole('figure').filter({ hasText: 'Requests per week' }).locator('svg').first()
  await chart.waitFor()
  await chart.scrollIntoViewIfNeeded()
  const box = await chart.boundingBox()
  assert.ok(box)
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
  const tooltip = page.locator('.recharts-tooltip-wrapper').filter({ hasText: 'Week of' }).first()
  await tooltip.waitFor()
  const text = await tooltip.innerText()
  const dayText = new Intl.DateTimeFormat('en-US', { timeZone: 'UTC', dateStyle: 'medium' })
  const week = weeks.find(({ day }) => text.includes(`Week of ${dayText.format(new Date(day))}`))
  assert.ok(week, text)
  assert.ok(text.includes(week.requests.toLocaleString('en-US')), `${text} ${week.requests}`)
})

browserTest('without traffic, the usage page says what to do', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  const page = await visit(t, server, ann, '/w/acme/usage')
  await page.getByRole('heading', { name: 'No usage yet' }).waitFor()
  await checkEveryView(page, 'usage-empty')
  await page.getByRole('link', { name: 'Open your first tunnel' }).click()
  await page.getByRole('heading', { name: 'Get started' }).waitFor()
})

browserTest('usage is exported as CSV in which no cell is taken for a formula', async (t) => {
  const { server, ann } = await serveWithOwner(t, { engine: 'sqlite' })
  await fillWithUsage(server.services, server.workspace.id, 30, () => {})
  await setRows(server.services, 'workspaces', { name: '=HYPERLINK("x","y"),1' })
  const page = await visit(t, server, ann, '/w/acme/usage?days=7')
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Export CSV').click()])
  const text = readFileSync(await download.path(), 'utf8')
  const [header, ...rows] = text.trim().split('\r\n')
  assert.equal(header, 'workspace,day,requests,bytes_in,bytes_out,peak_tunnels,events')
  assert.equal(rows.length, 7)
  for (const row of rows) assert.ok(row.startsWith('"\'=HYPERLINK(""x"",""y""),1",20'), row)
  const { series } = (await ann.get('/workspaces/acme/usage?days=7')).json
  assert.equal(Number(rows.at(-1)?.split(',').at(-4)), series.at(-1).bytesIn)
})
