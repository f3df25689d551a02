// The whole product in processes: transferred bytes, the edges' counters and the reported usage agree.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { caller } from '../support/api/server.ts'
import {
  closedTunnels,
  type Edge,
  fetchHost,
  newKey,
  openSocket,
  openTunnel,
  type Plane,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { until } from '../support/until.ts'

const MB = 1_000_000
/** Upper limit for the headers and WebSocket frames of a test. */
const HEADERS_MAX = 20_000
/** After this, usage is spooled. */
const SPOOLED_MS = 1_300
/** Long enough that the edge has failed to report, and to report again. */
const REPORTS_FAIL_MS = 10_000

const readUsage = async (plane: Pick<Plane, 'url'>, key: string) =>
  (await caller(`${plane.url}/api/v1`, key)('GET', '/usage?days=2')).json as {
    totalBytes: number
    peakTunnels: number
    eventCount: number
  }

/** Uploads and downloads the given numbers of bytes, and echoes some over a WebSocket. */
async function transfer(
  edge: Pick<Edge, 'port'>,
  host: string,
  [up, down, echoed]: [number, number, number],
) {
  const sent = await fetchHost(edge, host, { method: 'POST', body: Buffer.alloc(up, 'u') })
  assert.equal(JSON.parse(String(sent.body)).received, up)
  const got = await fetchHost(edge, host, { path: `/bytes/${down}` })
  assert.equal(got.body.length, down)
  const socket = await openSocket(edge, host)
  socket.send(Buffer.alloc(echoed, 'w'))
  const [back] = await once(socket, 'message')
  assert.equal((back as Buffer).length, echoed)
  socket.close()
  await once(socket, 'close')
  return { bytesIn: up + echoed, bytesOut: down + echoed + sent.body.length, requests: 3 }
}

const sum = <T>(items: T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0)

test('two edges and four tunnels of two workspaces: usage equals what the edges counted exactly, and the transferred bytes up to headers', async (t) => {
  const plane = await startPlane(t, ['acme', 'beta'])
  const local = await startLocal(t)
  const edges = [await startTunnelEdge(t, { plane }), await startTunnelEdge(t, { plane })] as const
  const keys = { acme: await newKey(plane, 'acme'), beta: await newKey(plane, 'beta') }
  const places = edges.flatMap((edge) => (['acme', 'beta'] as const).map((slug) => ({ edge, slug })))
  const transferred = await Promise.all(
    places.map(async ({ edge, slug }, index) => {
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
    const received = transferred.filter((one) => one.slug === slug)
    for (const direction of ['bytesIn', 'bytesOut'] as const) {
      const excess = sum(counted, (one) => one[direction]) - sum(received, (one) => one[direction])
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

async function kill(...running: { child: { kill(signal: 'SIGKILL'): boolean }; ended: Promise<unknown> }[]) {
  for (const { child } of running) child.kill('SIGKILL')
  await Promise.all(running.map(({ ended }) => ended))
}

/** Waits until the tunnel client has reconnected. */
const backAt = (edge: Pick<Edge, 'port'>, host: string) =>
  until(
    'the tunnel is open again',
    async () => (await fetchHost(edge, host).catch(() => undefined))?.status === 200,
    20_000,
  )

/** Starts a long download, and counts the bytes received before it is interrupted. */
function beginLong(edge: Pick<Edge, 'port'>, host: string) {
  let got = 0
  const broken = download(edge, host, (bytes) => {
    got += bytes
  })
  return { got: () => got, broken }
}

async function download(edge: Pick<Edge, 'port'>, host: string, onBytes: (bytes: number) => void) {
  await new Promise<void>((resolve) => {
    const options = {
      host: '127.0.0.1',
      port: edge.port,
      path: '/drip/1000',
      headers: { host },
      agent: false,
    }
    request(options, (response) => {
      response.on('data', (chunk) => onBytes(chunk.length))
      response.once('close', resolve)
      response.once('error', () => resolve())
    })
      .once('error', () => resolve())
      .end()
  })
}

test('edge and control plane are killed during transfers and restarted: spooled usage is counted exactly once', async (t) => {
  let plane = await startPlane(t, ['acme'])
  const local = await startLocal(t)
  const key = await newKey(plane, 'acme')
  let edge = await startTunnelEdge(t, { plane })
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  const kept: { bytesIn: number; bytesOut: number }[] = []
  /** Transferred before an edge was killed: counted or not. */
  let uncertainBytes = 0
  const transferAndSpool = async () => {
    kept.push(await transfer(edge, host, [MB, MB, MB / 2]))
    await sleep(SPOOLED_MS)
  }

  await transferAndSpool()
  const first = beginLong(edge, host)
  await until('it has begun', () => first.got() > 100_000)
  await kill(edge)
  await first.broken
  uncertainBytes += first.got()
  edge = await edge.restart()
  await backAt(edge, host)

  await kill(plane)
  await transferAndSpool()
  await sleep(REPORTS_FAIL_MS)
  plane = { ...plane, ...(await plane.restart()) }
  await transferAndSpool()

  const second = beginLong(edge, host)
  await until('it has begun', () => second.got() > 100_000)
  await kill(edge, plane)
  await second.broken
  uncertainBytes += second.got()
  plane = { ...plane, ...(await plane.restart()) }
  edge = await edge.restart()
  await backAt(edge, host)
  await transferAndSpool()
  edge.child.kill('SIGTERM')
  const { stderr } = await edge.ended

  const { totalBytes } = await readUsage(plane, key)
  const left = await readdir(edge.folder)
  const least = sum(kept, ({ bytesIn, bytesOut }) => bytesIn + bytesOut)
  t.diagnostic(
    `${totalBytes} bytes counted, ${least} spooled, ${uncertainBytes} more in interrupted transfers`,
  )
  assert.ok(totalBytes >= least, `${totalBytes} of ${least}, left in the spool: ${left}. ${stderr}`)
  // Interrupted transfers may have been counted up to what the edge had buffered.
  assert.ok(
    totalBytes <= least + uncertainBytes + HEADERS_MAX * kept.length + MB / 2,
    `${totalBytes} of ${least}`,
  )
})
