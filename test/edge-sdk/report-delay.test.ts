// How long the meter waits before its next report, also while the control plane is overloaded.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { createControlPlane, startMeter } from '../../src/edge-sdk/index.ts'
import { reportDelayMs } from '../../src/edge-sdk/usage/report-delay.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { listen } from '../support/network/listen.ts'
import { until } from '../support/until.ts'

const EVERY_MS = 50

test('the wait is the interval or a longer Retry-After, up to 5 minutes, with a jitter of 10 %', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e9 }), random, (retryAfterS, chance) => {
      const expectedMs = Math.min(Math.max(retryAfterS, 5), 300) * 1000
      const ms = reportDelayMs(5_000, retryAfterS, () => chance)
      assert.ok(Math.abs(ms / expectedMs - 1) < 0.1 + 1e-9, `${ms}`)
      assert.ok(ms >= Math.min(retryAfterS, 300) * 1000, `${ms} is earlier than Retry-After`)
    }),
  )
  assert.notEqual(reportDelayMs(5_000, 60), reportDelayMs(5_000, 60))
})

/** A control plane whose responses the test sets. */
async function setUp(t: Test) {
  const responses = { status: 200, headers: {}, body: {} as object }
  let received = 0
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    received += 1
    response.writeHead(responses.status, { 'content-type': 'application/json', ...responses.headers })
    response.end(JSON.stringify(responses.body))
  })
  const port = await listen(t, server)
  const url = `http://127.0.0.1:${port}`
  const folder = createFolder(t)
  const notices: string[] = []
  const start = async () => {
    const controlPlane = createControlPlane({ url, credential: 'adit_edge_x' })
    const onNotice = (line: string) => notices.push(line)
    const meter = await startMeter(controlPlane, { folder, reportEveryMs: EVERY_MS, onNotice })
    atEnd(t, meter.stop)
    return meter
  }
  const spooled = () => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'))
  return { responses, start, notices, reports: () => received, spooled }
}

const accepted = { accepted: 1, rejected: [] }

test('during Retry-After usage is only spooled, and reported when the meter is stopped', async (t) => {
  const { responses, start, notices, reports, spooled } = await setUp(t)
  Object.assign(responses, { status: 503, headers: { 'retry-after': '60' }, body: {} })
  const meter = await start()
  meter.transferred('acme', { bytesIn: 1 })
  await until('the notice', () => notices.some((line) => line.startsWith('Failed to report usage')))
  meter.transferred('acme', { bytesIn: 41 })
  // The spool is written every second, 20 times the interval of reports.
  await until('the rest is on disk', () => spooled().some((text) => text.includes('"bytesIn":42')))
  assert.equal(reports(), 1)
  Object.assign(responses, { status: 200, body: accepted })
  await meter.stop()
  assert.equal(reports(), 2)
  assert.deepEqual(spooled(), [])
  assert.equal(notices.at(-1), 'Reporting usage again.')
})

test('an unusable Retry-After is ignored', async (t) => {
  const { responses, start, reports } = await setUp(t)
  responses.body = accepted
  const meter = await start()
  meter.transferred('acme', { bytesIn: 1 })
  await until('a report', () => reports() > 0)
  responses.status = 503
  Object.assign(responses, { headers: { 'retry-after': 'Fri, 31 Dec 2049 23:59:59 GMT' } })
  const before = reports()
  meter.transferred('acme', { bytesIn: 1 })
  await until('it is retried', () => reports() > before + 2)
  responses.status = 200
})
