// Usage of transfers during which processes are killed.
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Edge,
  fetchHost,
  newKey,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { until } from '../support/until.ts'
import { HEADERS_MAX, MB, readUsage, sum, transfer } from './transfers.ts'

/** After this, usage is spooled. */
const SPOOLED_MS = 1_300
/** Long enough that the edge has failed to report, and to report again. */
const REPORTS_FAIL_MS = 10_000

async function kill(...running: { child: { kill(signal: 'SIGKILL'): boolean }; ended: Promise<unknown> }[]) {
  for (const { child } of running) child.kill('SIGKILL')
  await Promise.all(running.map(({ ended }) => ended))
}

/** Waits until the tunnel client has reconnected. */
const untilReopened = (edge: Pick<Edge, 'port'>, host: string) =>
  until(
    'the tunnel is open again',
    async () => (await fetchHost(edge, host).catch(() => undefined))?.status === 200,
    20_000,
  )

/** Starts a long download, and counts the bytes received before it is interrupted. */
function startLongDownload(edge: Pick<Edge, 'port'>, host: string) {
  let received = 0
  const interrupted = download(edge, host, (bytes) => {
    received += bytes
  })
  return { received: () => received, interrupted }
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
  const spooled: { bytesIn: number; bytesOut: number }[] = []
  /** Transferred before an edge was killed: counted or not. */
  let uncertainBytes = 0
  const transferAndSpool = async () => {
    spooled.push(await transfer(edge, host, [MB, MB, MB / 2]))
    await sleep(SPOOLED_MS)
  }

  await transferAndSpool()
  const first = startLongDownload(edge, host)
  await until('the download has begun', () => first.received() > 100_000)
  await kill(edge)
  await first.interrupted
  uncertainBytes += first.received()
  edge = await edge.restart()
  await untilReopened(edge, host)

  await kill(plane)
  await transferAndSpool()
  await sleep(REPORTS_FAIL_MS)
  plane = { ...plane, ...(await plane.restart()) }
  await transferAndSpool()

  const second = startLongDownload(edge, host)
  await until('the download has begun', () => second.received() > 100_000)
  await kill(edge, plane)
  await second.interrupted
  uncertainBytes += second.received()
  plane = { ...plane, ...(await plane.restart()) }
  edge = await edge.restart()
  await untilReopened(edge, host)
  await transferAndSpool()
  edge.child.kill('SIGTERM')
  const { stderr } = await edge.ended

  const { totalBytes } = await readUsage(plane, key)
  const left = await readdir(edge.folder)
  const spooledBytes = sum(spooled, ({ bytesIn, bytesOut }) => bytesIn + bytesOut)
  t.diagnostic(
    `${totalBytes} bytes counted, ${spooledBytes} spooled, ${uncertainBytes} more in interrupted transfers`,
  )
  assert.ok(
    totalBytes >= spooledBytes,
    `${totalBytes} of ${spooledBytes}, left in the spool: ${left}. ${stderr}`,
  )
  // Interrupted transfers may have been counted up to what the edge had buffered.
  assert.ok(
    totalBytes <= spooledBytes + uncertainBytes + HEADERS_MAX * spooled.length + MB / 2,
    `${totalBytes} of ${spooledBytes}`,
  )
})
