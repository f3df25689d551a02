// Which edge counts an open tunnel: the minutes of two edges are added, so none may be counted by both.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CountRule, TunnelCount } from '../../../src/edge/tunnels/count.ts'
import { PeerEdges } from '../../support/edges/peer-edges.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'

/** Records when a tunnel is counted, and when not. */
function recordCounts() {
  const changes: { isCounted: boolean; at: number }[] = []
  const add = (isCounted: boolean) => changes.push({ isCounted, at: Date.now() })
  const opened = (_workspace: string, isCounted: boolean) => isCounted && add(true)
  const closed = (_workspace: string, isCounted: boolean) => isCounted && add(false)
  return {
    changes,
    meter: { opened, closed, count: (_workspace: string, isCounted: boolean) => add(isCounted) },
  }
}

const inMs = (ms: number): CountRule => ({
  counts: true,
  countsFrom: new Date(Date.now() + ms).toISOString(),
})

test('a tunnel is never counted before its time', async () => {
  const early: number[] = []
  const counted = Array.from({ length: 300 }, async (_, index) => {
    const { changes, meter } = recordCounts()
    const rule = inMs(50 + index)
    new TunnelCount(meter, 'acme').open(rule)
    await until('it is counted', () => changes.length > 0)
    const earlyMs = Date.parse(rule.countsFrom as string) - (changes[0] as (typeof changes)[number]).at
    if (earlyMs > 0) early.push(earlyMs)
  })
  await Promise.all(counted)
  assert.deepEqual(early, [])
})

test('an edge that stops releases its names, and counts none of their tunnels any more', async (t) => {
  const cluster = await PeerEdges.create(t)
  const { changes, meter } = recordCounts()
  const edge = await cluster.start('edge_1', {
    meter: {
      ...meter,
      rejected() {},
      setQuota() {},
      transferred() {},
      spoolBytes: () => 0,
      async stop() {},
    },
  })
  const client = await openRawTunnel(edge, cluster.key, { name: 'app' })
  let respond = () => {}
  client.onStream((stream) =>
    stream.once('data', () => {
      respond = () => stream.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    }),
  )
  const response = fetchHost(edge, client.host)
  await until('a request is in progress', () => client.streams().length === 1)
  const stopped = edge.stop()
  // The edge first gives the client time to connect to another one.
  await until('the tunnel is not counted', () => changes.length === 2)
  assert.deepEqual(
    changes.map(({ isCounted }) => isCounted),
    [true, false],
  )
  respond()
  assert.equal((await response).status, 200)
  client.close()
  await stopped
})
