// Usage: reported through the edge API, read through the public API.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DAY_MS } from '../../../../src/lib/time.ts'
import { addEdge, addNode, addWorkspace, caller, serve, serveWithEdge } from '../../../support/api/server.ts'
import { counter } from '../../../support/api/usage.ts'
import { engines } from '../../../support/databases/create.ts'
import { pluck } from '../../../support/pluck.ts'

const NOW = Date.parse('2026-03-01T10:30:00.000Z')
const clock = () => NOW

for (const engine of engines) {
  test(`${engine}: an acknowledged report is visible in both variants immediately`, async (t) => {
    for (const variant of ['A', 'B']) {
      const { server, edge } = await serveWithEdge(t, { engine, clock, env: { ADIT_API_VARIANT: variant } })
      const lastSeen = '2026-03-01T10:02:11.000Z'
      const { status, json } = await edge.report({
        epoch: 'e-1',
        counters: [counter({ requests: 12, bytesIn: 3400, bytesOut: 91000, events: 4, lastSeen })],
        tunnels: [{ workspace: 'acme', minute: '2026-03-01T10:02:00.000Z', open: 3 }],
      })
      assert.equal(status, 200)
      assert.deepEqual(json, { accepted: 2, rejected: [] })
      const usage = (await server.call('GET', '/usage?days=1')).json
      const day = '2026-03-01T00:00:00.000Z'
      assert.deepEqual(
        usage,
        variant === 'A'
          ? {
              totalBytes: 94400,
              peakTunnels: 3,
              eventCount: 4,
              lastSeen,
              series: [{ day, bytes: 94400, peakTunnels: 3 }],
            }
          : {
              requests: 12,
              bytesIn: 3400,
              bytesOut: 91000,
              totalBytes: 94400,
              lastSeen,
              series: [{ day, requests: 12, bytesIn: 3400, bytesOut: 91000, totalBytes: 94400 }],
            },
      )
    }
  })

  test(`${engine}: unacceptable items are rejected one by one, and the rest is accepted`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock })
    const { json } = await edge.report({
      epoch: 'e-1',
      counters: [
        counter({ workspace: 'missing', requests: 1 }),
        counter({ requests: 2, bytesIn: 2 }),
        counter({ day: '2026-01-25', bytesIn: 20 }),
        counter({ day: '2026-01-24', bytesIn: 200 }),
        counter({ day: '2026-03-02' }),
        counter({ lastSeen: '2026-03-01T10:35:00.000Z', bytesIn: 3 }),
        counter({ lastSeen: '2026-03-01T10:35:00.001Z', bytesIn: 2000 }),
      ],
      tunnels: [
        { workspace: 'acme', minute: '2026-03-01T10:35:00.000Z', open: 1 },
        { workspace: 'acme', minute: '2026-03-01T10:36:00.000Z', open: 9 },
        { workspace: 'missing', minute: '2026-03-01T10:00:00.000Z', open: 9 },
        { workspace: 'acme', minute: '2026-01-24T23:59:00.000Z', open: 9 },
      ],
    })
    assert.partialDeepStrictEqual(json, {
      accepted: 4,
      rejected: [
        { list: 'counters', index: 0, reason: 'unknown_workspace' },
        { list: 'counters', index: 3, reason: 'too_old' },
        { list: 'counters', index: 4, reason: 'in_future' },
        { list: 'counters', index: 6, reason: 'in_future' },
        { list: 'tunnels', index: 1, reason: 'in_future' },
        { list: 'tunnels', index: 2, reason: 'unknown_workspace' },
        { list: 'tunnels', index: 3, reason: 'too_old' },
      ],
    })
    const usage = (await server.call('GET', '/usage?days=365')).json
    assert.equal(usage.totalBytes, 23)
    assert.equal(usage.peakTunnels, 1)
  })

  test(`${engine}: a malformed report is rejected as a whole, with the path of the error`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock })
    const valid = counter({ bytesIn: 7 })
    const tunnels = { workspace: 'acme', minute: '2026-03-01T10:00:00.000Z', open: 1 }
    const cases: [report: unknown, path: string][] = [
      [{}, '/body'],
      [{ epoch: '' }, '/body/epoch'],
      [{ epoch: 'a b' }, '/body/epoch'],
      [{ epoch: 'x'.repeat(65) }, '/body/epoch'],
      [{ epoch: 'e', counters: {} }, '/body/counters'],
      [{ epoch: 'e', counters: [valid, counter({ bytesIn: -1 })] }, '/body/counters/1/bytesIn'],
      [{ epoch: 'e', counters: [valid, counter({ bytesIn: 1.5 })] }, '/body/counters/1/bytesIn'],
      [{ epoch: 'e', counters: [valid, counter({ requests: 2 ** 53 })] }, '/body/counters/1/requests'],
      [{ epoch: 'e', counters: [valid, counter({ events: '7' })] }, '/body/counters/1/events'],
      [{ epoch: 'e', counters: [valid, { ...valid, bytesOut: undefined }] }, '/body/counters/1'],
      [{ epoch: 'e', counters: [valid, counter({ day: '2026-3-1' })] }, '/body/counters/1/day'],
      [{ epoch: 'e', counters: [valid, counter({ day: '2026-02-30' })] }, '/body/counters/1/day'],
      [{ epoch: 'e', counters: [valid, counter({ workspace: 'a\u0000' })] }, '/body/counters/1/workspace'],
      [{ epoch: 'e', counters: [valid, counter({ lastSeen: 'now' })] }, '/body/counters/1/lastSeen'],
      [
        { epoch: 'e', counters: [valid, counter({ lastSeen: '2026-02-28T23:59:59.999Z' })] },
        '/body/counters/1/lastSeen',
      ],
      [
        { epoch: 'e', counters: [valid], tunnels: [{ ...tunnels, minute: '2026-03-01T10:00:01.000Z' }] },
        '/body/tunnels/0/minute',
      ],
      [{ epoch: 'e', counters: [valid], tunnels: [{ ...tunnels, open: -1 }] }, '/body/tunnels/0/open'],
      [{ epoch: 'e', counters: Array(2501).fill(valid), tunnels: Array(2500).fill(tunnels) }, '/body'],
      [{ epoch: 'e', counters: Array(5001).fill(valid) }, '/body/counters'],
    ]
    for (const [report, path] of cases) {
      const { status, json } = await edge.report(report)
      assert.equal(status, 400, JSON.stringify(report).slice(0, 120))
      assert.equal(json.details[0].path, path, JSON.stringify(json))
    }
    assert.equal((await server.call('GET', '/usage')).json.totalBytes, 0)
    const most = await edge.report({
      epoch: 'e',
      counters: Array(2500).fill(valid),
      tunnels: Array(2500).fill(tunnels),
    })
    assert.deepEqual(most.json, { accepted: 5000, rejected: [] })
    assert.equal((await server.call('GET', '/usage')).json.totalBytes, 7)
  })

  test(`${engine}: dropped, repeated, reordered and duplicated reports result in exact totals`, async (t) => {
    const server = await serve(t, { engine, clock })
    const other = await addNode(t, server, clock)
    const edges = [await addEdge(server, 'one'), await addEdge(server, 'two')] as const
    let run = 0
    const step = fc.record({
      edge: fc.constantFrom(0, 1),
      workspace: fc.constantFrom(0, 1),
      day: fc.constantFrom('2026-02-28', '2026-03-01'),
      requests: fc.nat(1000),
      bytesIn: fc.nat(2 ** 31 - 1),
      bytesOut: fc.nat(2 ** 31 - 1),
      events: fc.nat(10),
      restarts: fc.boolean(),
      fate: fc.constantFrom('once', 'lost', 'duplicated', 'late', 'at the other node'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
        run += 1
        const workspaces = [await addWorkspace(server, `w${run}-0`), await addWorkspace(server, `w${run}-1`)]
        const epochs = [0, 0]
        const totals = new Map<string, ReturnType<typeof counter>>()
        const truth = new Map<
          string,
          { requests: number; bytesIn: number; bytesOut: number; events: number }
        >()
        const late: (() => Promise<unknown>)[] = []
        const send = async (edge: 0 | 1, epoch: number, items: object[], fate: string) => {
          const report = { epoch: `${run}-${epoch}`, counters: items }
          if (fate === 'lost') return
          if (fate === 'late') late.push(() => edges[edge].report(report))
          else if (fate === 'duplicated')
            await Promise.all([edges[edge].report(report), edges[edge].report(report)])
          else if (fate === 'at the other node')
            await caller(`${other.url}/edge/v1`, edges[edge].token)('POST', '/usage', { json: report })
          else await edges[edge].report(report)
        }
        for (const { edge, workspace, day, restarts, fate, ...more } of steps as ((typeof steps)[number] & {
          edge: 0 | 1
        })[]) {
          if (restarts) epochs[edge] = (epochs[edge] as number) + 1
          const slug = `w${run}-${workspace}`
          const key = `${edge} ${epochs[edge]} ${slug} ${day}`
          const total = totals.get(key) ?? counter({ workspace: slug, day })
          const sum = truth.get(`${slug} ${day}`) ?? { requests: 0, bytesIn: 0, bytesOut: 0, events: 0 }
          for (const figure of ['requests', 'bytesIn', 'bytesOut', 'events'] as const) {
            total[figure] += more[figure]
            sum[figure] += more[figure]
          }
          totals.set(key, total)
          truth.set(`${slug} ${day}`, sum)
          await send(edge, epochs[edge] as number, [{ ...total }], fate)
        }
        // The next report makes up for a lost one; late ones arrive after it.
        for (const [key, total] of totals) {
          const [edge, epoch] = key.split(' ').map(Number) as [0 | 1, number]
          await send(edge, epoch, [total], 'once')
        }
        for (const act of late.toReversed()) await act()
        for (const [index, { key }] of workspaces.entries()) {
          const slug = `w${run}-${index}`
          const usage = (await server.call('GET', '/usage?days=2', { key: key.token })).json
          const days = ['2026-02-28', '2026-03-01'].map((day) => truth.get(`${slug} ${day}`))
          const bytes = days.map((sum) => (sum ? sum.bytesIn + sum.bytesOut : 0))
          assert.deepEqual(pluck(usage.series, 'bytes'), bytes)
          assert.equal(usage.totalBytes, (bytes[0] as number) + (bytes[1] as number))
          assert.equal(usage.eventCount, (days[0]?.events ?? 0) + (days[1]?.events ?? 0))
        }
      }),
      { numRuns: 25 },
    )
  })

  test(`${engine}: the peak is the largest sum of one minute; midnight is in both days`, async (t) => {
    const server = await serve(t, { engine, clock })
    const [one, two] = [await addEdge(server, 'one'), await addEdge(server, 'two')]
    const open = (edge: typeof one, ...minutes: [minute: string, open: number][]) =>
      edge.report({
        epoch: 'e',
        tunnels: minutes.map(([minute, count]) => ({
          workspace: 'acme',
          minute: `${minute}:00.000Z`,
          open: count,
        })),
      })
    // Two tunnels stay open across midnight; each edge has its own busiest minute.
    await open(one, ['2026-02-28T23:59', 2], ['2026-03-01T00:00', 2], ['2026-03-01T08:00', 7])
    await open(two, ['2026-02-28T23:59', 3], ['2026-03-01T00:00', 1], ['2026-03-01T09:00', 6])
    const { series, peakTunnels } = (await server.call('GET', '/usage?days=2')).json
    assert.deepEqual(pluck(series, 'peakTunnels'), [5, 7], 'not 13, the sum of peaks')
    assert.equal(peakTunnels, 7)
    await open(two, ['2026-03-01T08:00', 4])
    assert.equal((await server.call('GET', '/usage?days=1')).json.peakTunnels, 11)
  })

  test(`${engine}: a late report updates a past day correctly`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock })
    const day = new Date(NOW - 20 * DAY_MS).toISOString().slice(0, 10)
    for (const bytesIn of [5, 9, 7]) await edge.report({ epoch: 'e', counters: [counter({ day, bytesIn })] })
    const { series } = (await server.call('GET', '/usage?days=30')).json
    assert.equal(series[9].bytes, 9)
  })
}

test('the first 20 errors of a report are returned, each with its path', async (t) => {
  const { edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const valid = counter({})
  const list = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? valid : { ...valid, events: -1 }))
  const { status, json } = await edge.report({ epoch: 'e', counters: list })
  assert.equal(status, 400)
  assert.deepEqual(
    pluck(json.details, 'path'),
    Array.from({ length: 20 }, (_, index) => `/body/counters/${index * 2 + 1}/events`),
  )
})

test('a list with too many items is rejected, valid items or not', async (t) => {
  const { edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const { json } = await edge.report({ epoch: 'e', tunnels: Array(5_001).fill(7) })
  assert.deepEqual(json.details, [{ path: '/body/tunnels', message: 'must not have more than 5000 items' }])
})
