// Slow receivers behind a hop: neither edge buffers what they do not read.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../../support/cleanup.ts'
import { PeerEdges } from '../../support/edges/peer-edges.ts'
import { startHttp } from '../../support/edges/tunneled.ts'
import { openTunnel } from '../../support/edges/tunnels.ts'

const CHUNK = Buffer.alloc(256 * 1024, 'x')
/** Two windows of 8 MiB at most, buffers of TCP at four connections, and those of streams. */
const BUFFERED_MAX = 64e6

const cluster = await PeerEdges.create({ after })
const serving = await cluster.start('edge_serving')
const entry = await cluster.start('edge_entry')

/** Resolves with the value when it has not changed for a while. */
async function settled(value: () => number): Promise<number> {
  let before = -1
  while (before !== value() || before === 0) {
    before = value()
    await sleep(300)
  }
  return before
}

test('a visitor that does not read stops the local server', async (t) => {
  let sent = 0
  const { port } = await startHttp(t, (_request, response: ServerResponse) => {
    const write = () => {
      do sent += CHUNK.length
      while (!response.destroyed && response.write(CHUNK))
    }
    response.on('drain', write)
    write()
  })
  const { host } = await openTunnel(t, { edge: serving, key: cluster.key, port, name: 'down' })
  const visitor = connect(entry.port, '127.0.0.1')
  atEnd(t, () => visitor.destroy())
  visitor.on('error', () => {})
  visitor.pause()
  visitor.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  const stopped = await settled(() => sent)
  assert.ok(stopped < BUFFERED_MAX, `${stopped} bytes were sent`)
  assert.ok(entry.metrics.bufferedBytes() + serving.metrics.bufferedBytes() > 0)
  // It goes on when the visitor reads.
  let received = 0
  visitor.on('data', (chunk) => {
    received += chunk.length
  })
  visitor.resume()
  while (received < stopped + 10e6) await once(visitor, 'data')
})

test('a local server that does not read stops the visitor', async (t) => {
  const { port } = await startHttp(t, (request) => void request.pause())
  const { host } = await openTunnel(t, { edge: serving, key: cluster.key, port, name: 'up' })
  const visitor = connect(entry.port, '127.0.0.1')
  atEnd(t, () => visitor.destroy())
  visitor.on('error', () => {})
  let sent = 0
  const write = () => {
    do sent += CHUNK.length
    while (visitor.write(CHUNK))
  }
  visitor.on('drain', write)
  visitor.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1000000000\r\n\r\n`)
  write()
  const stopped = await settled(() => sent)
  assert.ok(stopped < BUFFERED_MAX, `${stopped} bytes were sent`)
})
