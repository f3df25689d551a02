// Transfers through tunnels, and what was counted of them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { caller } from '../support/api/server.ts'
import { type Edge, fetchHost, openSocket, type Plane } from '../support/edges/tunnels.ts'

export const MB = 1_000_000
/** Upper limit for the headers and WebSocket frames of a test. */
export const HEADERS_MAX = 20_000

export const readUsage = async (plane: Pick<Plane, 'url'>, key: string) =>
  (await caller(`${plane.url}/api/v1`, key)('GET', '/usage?days=2')).json as {
    totalBytes: number
    peakTunnels: number
    eventCount: number
  }

/** Uploads and downloads the given numbers of bytes, and echoes some over a WebSocket. */
export async function transfer(
  edge: Pick<Edge, 'port'>,
  host: string,
  [up, down, echoed]: [number, number, number],
) {
  const sent = await fetchHost(edge, host, { method: 'POST', body: Buffer.alloc(up, 'u') })
  assert.equal(JSON.parse(String(sent.body)).received, up)
  const download = await fetchHost(edge, host, { path: `/bytes/${down}` })
  assert.equal(download.body.length, down)
  const socket = await openSocket(edge, host)
  socket.send(Buffer.alloc(echoed, 'w'))
  const [echo] = await once(socket, 'message')
  assert.equal((echo as Buffer).length, echoed)
  socket.close()
  await once(socket, 'close')
  return { bytesIn: up + echoed, bytesOut: down + echoed + sent.body.length, requests: 3 }
}

export const sum = <T>(items: T[], read: (item: T) => number) =>
  items.reduce((total, item) => total + read(item), 0)
