import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS } from '../../../src/lib/time.ts'
import { addWorkspace, serve, type TestServer } from '../../support/api/server.ts'
import { addUsage, mergeReport } from '../../support/api/usage.ts'
import { engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'

const NOW = Date.parse('2026-03-01T10:30:00.000Z')
const TODAY = Date.parse('2026-03-01T00:00:00.000Z')

const report = (server: TestServer, traffic: Parameters<typeof addUsage>[1] & { day: number }) =>
  addUsage(server, { lastSeen: traffic.day + 1_000, ...traffic })

const openTunnels = (server: TestServer, minute: number, open: number, edgeId = 'edge_1') =>
  mergeReport(server.services.store, {
    edgeId,
    epoch: 'e1',
    counters: [],
    tunnels: [{ workspaceId: server.workspace.id, minute, open }],
  })

for (const engine of engines) {
  test(`${engine}: before any traffic all figures are 0 and lastSeen is null`, async (t) => {
    const a = await serve(t, { engine, clock: () => NOW })
    assert.deepEqual((await a.call('GET', '/usage?days=2')).json, {
      totalBytes: 0,
      peakTunnels: 0,
      eventCount: 0,
      lastSeen: null,
      series: [
        { day: '2026-02-28T00:00:00.000Z', bytes: 0, peakTunnels: 0 },
        { day: '2026-03-01T00:00:00.000Z', bytes: 0, peakTunnels: 0 },
      ],
    })
    const b = await serve(t, { engine, clock: () => NOW, env: { ADIT_API_VARIANT: 'B' } })
    assert.deepEqual((await b.call('GET', '/usage?days=1')).json, {
      requests: 0,
      bytesIn: 0,
      bytesOut: 0,
      totalBytes: 0,
      lastSeen: null,
      series: [{ day: '2026-03-01T00:00:00.000Z', requests: 0, bytesIn: 0, bytesOut: 0, totalBytes: 0 }],
    })
  })

  for (const variant of ['A', 'B'] as const)
    test(`${engine}: variant ${variant} has its figures, and days add up to totals`, async (t) => {
      const server = await serve(t, { engine, clock: () => NOW, env: { ADIT_API_VARIANT: variant } })
      const { workspace: other } = await addWorkspace(server, 'other')
      await report(server, {
        day: TODAY,
        requests: 5n,
        bytesIn: 10n,
        bytesOut: 20n,
        events: 3n,
        lastSeen: NOW - 1,
      })
      await report(server, { day: TODAY - DAY_MS, requests: 7n, bytesIn: 1n, bytesOut: 2n, events: 4n })
      await report(server, {
        day: TODAY - 2 * DAY_MS,
        requests: 100n,
        bytesIn: 100n,
        bytesOut: 100n,
        events: 100n,
      })
      await report(server, { day: TODAY, bytesIn: 999n, workspaceId: other.id })
      await openTunnels(server, TODAY, 2)
      await openTunnels(server, TODAY, 3, 'edge_2')
      await openTunnels(server, TODAY - 60_000, 4)
      const { json } = await server.call('GET', '/usage?days=2')
      const expected = {
        A: {
          totalBytes: 33,
          peakTunnels: 5,
          eventCount: 7,
          lastSeen: '2026-03-01T10:29:59.999Z',
          series: [
            { day: '2026-02-28T00:00:00.000Z', bytes: 3, peakTunnels: 4 },
            { day: '2026-03-01T00:00:00.000Z', bytes: 30, peakTunnels: 5 },
          ],
        },
        B: {
          requests: 12,
          bytesIn: 11,
          bytesOut: 22,
          totalBytes: 33,
          lastSeen: '2026-03-01T10:29:59.999Z',
          series: [
            { day: '2026-02-28T00:00:00.000Z', requests: 7, bytesIn: 1, bytesOut: 2, totalBytes: 3 },
            { day: '2026-03-01T00:00:00.000Z', requests: 5, bytesIn: 10, bytesOut: 20, totalBytes: 30 },
          ],
        },
      }
      assert.deepEqual(json, expected[variant])
    })

  test(`${engine}: the window is the last UTC days including today, 30 by default`, async (t) => {
    let now = NOW
    const server = await serve(t, { engine, clock: () => now })
    const readDays = async (query: string) =>
      pluck((await server.call('GET', `/usage${query}`)).json.series, 'day')
    for (const [query, length] of [
      ['', 30],
      ['?days=1', 1],
      ['?days=007', 7],
      ['?days=365', 365],
      ['?other=1', 30],
      ['?Days=1', 30],
    ] as const) {
      const days = await readDays(query)
      assert.equal(days.length, length, query)
      assert.equal(days.at(-1), '2026-03-01T00:00:00.000Z')
      assert.equal(days[0], new Date(TODAY - (length - 1) * DAY_MS).toISOString())
    }
    // Across a leap day, and at the first and last moment of a day.
    now = Date.parse('2028-03-01T00:00:00.000Z')
    assert.deepEqual(await readDays('?days=2'), ['2028-02-29T00:00:00.000Z', '2028-03-01T00:00:00.000Z'])
    now -= 1
    assert.deepEqual(await readDays('?days=1'), ['2028-02-29T00:00:00.000Z'])
  })

  test(`${engine}: lastSeen is the last traffic ever, even before the window`, async (t) => {
    const server = await serve(t, { engine, clock: () => NOW })
    await report(server, { day: TODAY - 300 * DAY_MS, bytesIn: 1n, lastSeen: TODAY - 300 * DAY_MS + 5 })
    await report(server, { day: TODAY, lastSeen: null })
    const { json } = await server.call('GET', '/usage?days=7')
    assert.equal(json.totalBytes, 0)
    assert.equal(json.lastSeen, new Date(TODAY - 300 * DAY_MS + 5).toISOString())
  })

  test(`${engine}: integers are exact past 2^53, written as digits`, async (t) => {
    const server = await serve(t, { engine, clock: () => NOW })
    const huge = 2n ** 53n + 1n
    for (const [index, edgeId] of ['e1', 'e2', 'e3'].entries())
      await report(server, { day: TODAY - index * DAY_MS, bytesIn: huge, events: huge, edgeId })
    await report(server, { day: TODAY, bytesOut: 2n, edgeId: 'e9' })
    const { text } = await server.call('GET', '/usage?days=3')
    assert.match(text, new RegExp(`"totalBytes":${3n * huge + 2n}[,}]`))
    assert.match(text, new RegExp(`"eventCount":${3n * huge}[,}]`))
    assert.match(text, new RegExp(`"bytes":${huge + 2n}[,}]`))
  })

  test(`${engine}: days other than an integer from 1 to 365 is 400`, async (t) => {
    const { call } = await serve(t, { engine })
    const invalid = [
      'days=0',
      'days=366',
      'days=-1',
      'days=',
      'days',
      'days=7abc',
      'days=1e2',
      'days=0x10',
      'days=7.0',
      'days=+7',
      'days=%207',
      'days=7%20',
      'days=7%00',
      'days=٧',
      'days=Infinity',
      'days=null',
      'days=7&days=7',
      'days=7&days=',
      `days=${'9'.repeat(400)}`,
      `days=${'0'.repeat(400)}7`,
    ]
    for (const query of invalid) {
      const { status, json } = await call('GET', `/usage?${query}`)
      assert.equal(status, 400, query)
      assert.deepEqual(json, {
        error: 'invalid_request',
        details: [{ path: '/query/days', message: 'must be a whole number from 1 to 365' }],
      })
    }
  })
}
