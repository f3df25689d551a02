// The whole product in processes: transferred bytes, the edges' counters and the reported usage agree.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  closedTunnels,
  newKey,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { HEADERS_MAX, MB, readUsage, sum, transfer } from './transfers.ts'

test('the usage of two workspaces at two edges is what the edges counted, and the transferred bytes plus headers', async (t) => {
  const plane = await startPlane(t, ['acme', 'beta'])
  const local = await startLocal(t)
  const edges = [await startTunnelEdge(t, { plane }), await startTunnelEdge(t, { plane })] as const
  const keys = { acme: await newKey(plane, 'acme'), beta: await newKey(plane, 'beta') }
  const tunnels = edges.flatMap((edge) => (['acme', 'beta'] as const).map((slug) => ({ edge, slug })))
  const transferred = await Promise.all(
    tunnels.map(async ({ edge, slug }, index) => {
      const { host, url } = await openTunnel(t, {
        edge,
        key: keys[slug],
        port: local.port,
        name: `app-${index}`,
      })
      assert.equal(url, `http://app-${index}.${slug}.localhost:${edge.port}`)
      return { slug, ...(await transfer(edge, host, [3 * MB + index, 2 * MB, MB])) }
    }),
  )
  const logs = await Promise.all(
    edges.map(async ({ child, ended }) => {
      child.kill('SIGTERM')
      const { code, stderr } = await ended
      assert.equal(code, 0, stderr)
      return stderr
    }),
  )
  const metered = logs.flatMap(closedTunnels)
  assert.equal(metered.length, 4)
  for (const slug of ['acme', 'beta'] as const) {
    const counted = metered.filter(({ workspace }) => workspace === slug)
    const received = transferred.filter((transfer) => transfer.slug === slug)
    for (const direction of ['bytesIn', 'bytesOut'] as const) {
      const excess = sum(counted, (bytes) => bytes[direction]) - sum(received, (bytes) => bytes[direction])
      assert.ok(excess > 0 && excess < HEADERS_MAX, `${slug} ${direction}: ${excess}`)
    }
    assert.equal(
      sum(counted, ({ requests }) => requests),
      sum(received, ({ requests }) => requests),
    )
    const { totalBytes, peakTunnels, eventCount } = await readUsage(plane, keys[slug])
    assert.equal(
      totalBytes,
      sum(counted, ({ bytesIn, bytesOut }) => bytesIn + bytesOut),
    )
    assert.deepEqual({ peakTunnels, eventCount }, { peakTunnels: 2, eventCount: 4 })
  }
})
