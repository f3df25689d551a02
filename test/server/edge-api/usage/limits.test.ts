// Implausible totals: one edge cannot exhaust what a workspace may use in a day, and only the item is
// rejected, never the report.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addEdge, addWorkspace, serveWithEdge, type TestServer } from '../../../support/api/server.ts'
import { addUsage, counter } from '../../../support/api/usage.ts'
import { engines } from '../../../support/databases/create.ts'

const NOW = Date.parse('2026-03-01T10:30:00.000Z')
const clock = () => NOW
/** The capacity of a link of 1 Gbit/s in a day. */
const BYTES_MAX = 10_800_000_000_000
const REQUESTS_MAX = BYTES_MAX / 100

/** The result of a report with one item. */
const ACCEPTED = { accepted: 1, rejected: [] }
const tooLarge = (index: number) => ({ list: 'counters', index, reason: 'too_large' })

const readTotal = async (server: TestServer, key = server.key.token) =>
  (await server.call('GET', '/usage?days=1', { key })).json.totalBytes

/** Repeats the report as an edge does while the server has too many reports waiting. */
async function reportUntilMerged(edge: Awaited<ReturnType<typeof addEdge>>, report: unknown) {
  for (;;) {
    const response = await edge.report(report)
    if (response.status !== 503) {
      assert.equal(response.status, 200)
      return response
    }
  }
}

for (const engine of engines) {
  test(`${engine}: an implausible item is rejected, the rest of the report is not`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock, env: { ADIT_USAGE_LINK_GBPS: '1' } })
    const other = await addWorkspace(server, 'other')
    const { status, json } = await edge.report({
      epoch: 'e',
      counters: [counter({ workspace: 'other', bytesIn: 7 }), counter({ bytesIn: BYTES_MAX + 1 })],
      tunnels: [{ workspace: 'acme', minute: '2026-03-01T10:00:00.000Z', open: 3 }],
    })
    assert.equal(status, 200)
    assert.partialDeepStrictEqual(json, { accepted: 2, rejected: [tooLarge(1)] })
    assert.equal(await readTotal(server, other.key.token), 7)
    const usage = (await server.call('GET', '/usage?days=1')).json
    assert.deepEqual([usage.totalBytes, usage.peakTunnels], [0, 3])
  })

  test(`${engine}: an edge adds what its link carries in a day to a workspace, over all epochs, and at most a hundredth more per epoch`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock, env: { ADIT_USAGE_LINK_GBPS: '1' } })
    const send = async (epoch: string, given: object) =>
      (await edge.report({ epoch, counters: [counter(given)] })).json.rejected
    const part = BYTES_MAX / 50
    assert.deepEqual(await send('a', { bytesIn: BYTES_MAX - part }), [])
    assert.deepEqual(await send('b', { bytesIn: part + 1 }), [tooLarge(0)])
    assert.deepEqual(await send('b', { bytesIn: part }), [])
    assert.deepEqual(await send('b', { bytesIn: part }), [], 'a repeated report changes nothing')
    assert.deepEqual(await send('a', { bytesIn: BYTES_MAX - part + 1 }), [tooLarge(0)])
    assert.deepEqual(await send('c', { requests: REQUESTS_MAX + 1 }), [tooLarge(0)])
    assert.deepEqual(await send('c', { events: REQUESTS_MAX + 1 }), [tooLarge(0)])
    assert.deepEqual(await send('c', { bytesOut: BYTES_MAX }), [], 'each figure has a limit of its own')
    assert.equal(await readTotal(server), 2 * BYTES_MAX)
    const honest = await addEdge(server, 'honest')
    const { json } = await honest.report({ epoch: 'a', counters: [counter({ bytesIn: 5 })] })
    assert.deepEqual(json, ACCEPTED)
    assert.equal(await readTotal(server), 2 * BYTES_MAX + 5)
    const unchecked = BYTES_MAX / 100
    assert.deepEqual(await send('d', { bytesIn: unchecked + 1 }), [tooLarge(0)])
    assert.deepEqual(await send('d', { bytesIn: unchecked }), [], 'a hundredth is accepted in any case')
  })

  test(`${engine}: concurrently reported epochs do not exceed the limit together`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock, env: { ADIT_USAGE_LINK_GBPS: '1' } })
    const share = BYTES_MAX / 4
    const responses = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        reportUntilMerged(edge, { epoch: `e${index}`, counters: [counter({ bytesIn: share })] }),
      ),
    )
    assert.equal(responses.filter(({ json }) => json.accepted === 1).length, 4)
    assert.equal(await readTotal(server), BYTES_MAX)
  })

  test(`${engine}: an edge has at most 100 epochs in a workspace's day, and zeros need none`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock })
    const honest = await addEdge(server, 'honest')
    const send = async (epoch: string, given: object, sender = edge) =>
      (await sender.report({ epoch, counters: [counter(given)] })).json
    const { db } = server.services.store
    const rows = async () => (await db.selectFrom('usage_counters').select('epoch').execute()).length
    const rejected = (index: number) => ({ list: 'counters', index, reason: 'too_many_epochs' })
    for (let index = 0; index < 3; index++) assert.deepEqual(await send(`zero${index}`, {}), ACCEPTED)
    assert.equal(await rows(), 0, 'zeros are not stored')
    for (let index = 0; index < 100; index++)
      assert.deepEqual(await send(`e${index}`, { bytesIn: 1 }), ACCEPTED)
    assert.partialDeepStrictEqual(await send('e100', { bytesIn: 1 }), {
      accepted: 0,
      rejected: [rejected(0)],
    })
    assert.partialDeepStrictEqual(await send('e100', { lastSeen: '2026-03-01T10:00:00.000Z' }), {
      accepted: 0,
      rejected: [rejected(0)],
    })
    assert.deepEqual(await send('e100', {}), ACCEPTED, 'zeros change nothing')
    assert.equal(await rows(), 100)
    assert.deepEqual(await send('e99', { bytesIn: 5 }), ACCEPTED, 'a known epoch continues')
    const { json } = await edge.report({
      epoch: 'e100',
      counters: [counter({ bytesIn: 1 }), counter({ day: '2026-02-28', bytesIn: 7 })],
    })
    assert.partialDeepStrictEqual(
      json,
      { accepted: 1, rejected: [rejected(0)] },
      'another day has its own epochs',
    )
    assert.deepEqual(await send('e100', { bytesIn: 20 }, honest), ACCEPTED)
    assert.equal(await readTotal(server), 99 + 5 + 20)
  })

  test(`${engine}: concurrently reported epochs do not exceed 100 together`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock })
    const responses = await Promise.all(
      Array.from({ length: 110 }, (_, index) =>
        reportUntilMerged(edge, { epoch: `e${index}`, counters: [counter({ bytesIn: 1 })] }),
      ),
    )
    assert.equal(responses.filter(({ json }) => json.accepted === 1).length, 100)
    assert.equal(await readTotal(server), 100)
  })

  test(`${engine}: a day at the 63-bit maximum rejects its own items, and no others`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, clock })
    const other = await addWorkspace(server, 'other')
    await addUsage(server, { edgeId: 'edge_before_the_limit', bytesIn: 2n ** 63n - 10n })
    const send = (bytesIn: number) =>
      edge.report({
        epoch: 'e',
        counters: [counter({ bytesIn }), counter({ workspace: 'other', bytesIn })],
      })
    assert.partialDeepStrictEqual((await send(10)).json, { accepted: 1, rejected: [tooLarge(0)] })
    assert.deepEqual((await send(9)).json, { accepted: 2, rejected: [] })
    assert.match((await server.call('GET', '/usage?days=1')).text, /"totalBytes":9223372036854775807,/)
    assert.equal(await readTotal(server, other.key.token), 10)
  })
}
