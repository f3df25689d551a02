// Peers and locations in the change stream.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { appendLocations, readHeads } from '../../../src/server/store/cluster/location-log.ts'
import { addEdge, serve, serveWithEdge } from '../../support/api/server.ts'
import { until } from '../../support/until.ts'
import { listen } from './change-stream.ts'

test('an edge that did not ask for peers and locations gets none', async (t) => {
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const { received } = await listen(t, server.url, edge.token)
  const asking = await listen(t, server.url, edge.token, undefined, '?locations=none')
  await asking.until((list) => list.some(({ event }) => event === 'locations'))
  assert.deepEqual(
    received.filter(({ event }) => event !== undefined),
    [],
  )
  for (const locations of ['', '1', 'x-y', `${'9'.repeat(16)}-a`])
    assert.equal((await edge.call('GET', `/key-changes?locations=${locations}`)).status, 400, locations)
})

test('a stream whose edge does not read is ended when 8 MiB of locations wait', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const [slow, fast] = [await addEdge(server, 'slow'), await addEdge(server, 'fast')]
  const reading = await listen(t, server.url, fast.token, undefined, '?locations=none')
  const response = await fetch(`${server.url}/edge/v1/key-changes?locations=none`, {
    headers: { authorization: `Bearer ${slow.token}` },
  })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  await reader.read()
  const { store } = server.services
  const host = 'x'.repeat(200)
  const opened = Array.from({ length: 400 }, (_, index) => [`${host}${index}`, slow.id] as const)
  const entries = Array.from({ length: 25 }, () => ({ checksum: 'c', opened, closed: [] }))
  for (let round = 1; round <= 10; round++) {
    await store.transaction(async (tx) => {
      const [head] = await readHeads(tx)
      assert.ok(head)
      await appendLocations(tx, head, entries, Date.now())
    })
    const position = `"position":"${round * 25}-c"`
    await until('an edge that reads has them', () =>
      reading.received.some(({ data }) => data?.includes(position)),
    )
  }
  let bytes = 0
  for (;;) {
    const { value, done } = await reader.read()
    if (done) break
    bytes += value.length
  }
  assert.ok(bytes < 250 * 400 * 200, `it got ${bytes} bytes`)
  assert.equal(reading.isOver(), false)
})
