// A gigabyte of WebSocket messages takes a bounded amount of memory, also while nobody reads.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, test } from 'node:test'
import { type WebSocket, WebSocketServer } from 'ws'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { openSocket, openTunnel } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { peakBytes } from '../../support/processes/resources.ts'
import { until } from '../../support/until.ts'

const MIB = 1024 * 1024
const MESSAGE_BYTES = 64 * 1024
/** What windows and buffers of tunnel and kernel may hold of one connection, in both directions. */
const IN_TRANSIT_MAX = 64 * MIB
/** In transit, and what V8 has not collected yet. */
const GROWTH_MAX = 200 * MIB
/** What a sender keeps in its own memory. */
const BUFFERED_BYTES = 4 * MIB

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])

/** Sends each message back. Reads nothing while the visitor does not. */
function echo(socket: WebSocket): void {
  socket.on('message', (data, binary) => {
    socket.send(data, { binary }, () => socket.bufferedAmount < BUFFERED_BYTES && socket.resume())
    if (socket.bufferedAmount >= BUFFERED_BYTES) socket.pause()
  })
}

/** Messages that differ from each other, so that a lost or repeated one is noticed. */
const payloads = Array.from({ length: 251 }, () => randomBytes(MESSAGE_BYTES))
const payload = (index: number) => payloads[index % payloads.length] as Buffer

for (const [what, bytes, isCompressed] of [
  ['1 GiB of messages, half in each direction,', 512 * MIB, false],
  // Compressing takes the time of this test.
  ['128 MiB of compressed messages', 64 * MIB, true],
] as const)
  test(`${what} arrive in order, with a bounded amount of memory`, async (t) => {
    const http = createServer()
    const perMessageDeflate = isCompressed && { zlibDeflateOptions: { level: 1 } }
    new WebSocketServer({ server: http, perMessageDeflate }).on('connection', echo)
    const port = await listen(t, http)
    const name = isCompressed ? 'compressed' : 'plain'
    const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port, name })
    const pids = [edge, tunnel].map(({ child }) => child.pid as number)
    const before = process.platform === 'linux' ? pids.map(peakBytes) : []

    const socket = await openSocket(edge, tunnel.host)
    assert.equal(socket.extensions, isCompressed ? 'permessage-deflate' : '')
    let [sent, received] = [0, 0]
    socket.on('message', (data: Buffer) => {
      assert.ok(data.equals(payload(received)), `message ${received}`)
      received += 1
    })
    const messages = bytes / MESSAGE_BYTES
    const inTransit = () => (sent - received) * MESSAGE_BYTES - socket.bufferedAmount
    const send = () => {
      while (sent < messages && socket.bufferedAmount < BUFFERED_BYTES) {
        socket.send(payload(sent), { binary: true }, send)
        sent += 1
      }
    }
    socket.pause()
    send()
    let stalledAt = -1
    await until('the tunnel takes no more', async () => {
      const isStalled = stalledAt === sent && socket.bufferedAmount > 0
      stalledAt = sent
      await new Promise((resolve) => setTimeout(resolve, 500))
      return isStalled
    })
    assert.ok(inTransit() <= IN_TRANSIT_MAX, `${inTransit()} bytes`)
    socket.resume()
    await until('all are back', () => received === messages, 240_000)
    socket.close()
    await once(socket, 'close')
    for (const [index, peak] of before.entries()) {
      const growth = peakBytes(pids[index] as number) - peak
      assert.ok(growth < GROWTH_MAX, `process ${index} has grown by ${growth} bytes`)
    }
  })
