// A peer that sends as many frames as it can uses neither memory nor work without limit.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import { DATA, FIN, frame, PING, RST, rawPeer, SYN, WINDOW_UPDATE } from './support.ts'

const FRAMES = 100_000
const BATCH = 5_000

async function flood(socket: Socket, frameAt: (index: number) => Buffer, count = FRAMES): Promise<void> {
  for (let sent = 0; sent < count && !socket.destroyed && socket.writable; sent += BATCH) {
    const batch = Buffer.concat(Array.from({ length: BATCH }, (_, index) => frameAt(sent + index)))
    if (!socket.write(batch)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
  }
}

const ping = frame({ type: PING, flags: SYN })

test('pings whose responses are not read close the session', async (t) => {
  const { socket, server } = await rawPeer(t)
  socket.pause()
  const flooding = flood(socket, () => ping, Infinity).catch(() => {})
  assert.match(String(await server.closed), /flood: the peer has not read \d+ control frames/)
  socket.destroy()
  await flooding
})

test('pings whose responses are read are answered', async (t) => {
  const { socket, server } = await rawPeer(t)
  let bytes = 0
  socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  await flood(socket, () => ping)
  await until('all are answered', () => bytes >= FRAMES * ping.length)
  assert.ok(!server.session.isClosed)
})

test('streams that are opened and reset at once count against the limit for a second', async (t) => {
  const { socket, server, frames } = await rawPeer(t, { maxStreams: 100 })
  const began = performance.now()
  await flood(socket, (index) => {
    const id = 1 + 2 * (index >> 1)
    return frame({ type: WINDOW_UPDATE, flags: index % 2 ? RST : SYN, id })
  })
  socket.write(frame({ type: PING, flags: SYN, length: 77 }))
  await until('everything is processed', () => frames().at(-1)?.length === 77)
  const seconds = Math.ceil((performance.now() - began) / 1_000)
  const accepted = server.streams.length
  assert.ok(accepted <= 100 * (seconds + 1), `${accepted} streams in ${seconds} s`)
  assert.equal(server.session.streams, 0)
})

test('window updates and empty data frames cost no memory', async (t) => {
  const { socket, server, frames } = await rawPeer(t)
  socket.write(frame({ type: WINDOW_UPDATE, flags: SYN, id: 1 }))
  const update = frame({ type: WINDOW_UPDATE, id: 1, length: 1 })
  const empty = frame({ type: DATA, id: 1 })
  await flood(socket, (index) => (index % 2 ? update : empty))
  socket.write(frame({ type: DATA, flags: FIN, id: 1 }))
  socket.write(frame({ type: PING, flags: SYN, length: 77 }))
  await until('everything is processed', () => frames().some(({ length }) => length === 77))
  assert.equal(server.streams[0]?.unreadBytes, 0)
  assert.ok(!server.session.isClosed)
})

test('more streams than the limit cost one reset each', async (t) => {
  const { socket, server } = await rawPeer(t, { maxStreams: 10 })
  let bytes = 0
  socket.removeAllListeners('data').on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  await flood(socket, (index) => frame({ type: WINDOW_UPDATE, flags: SYN, id: 1 + 2 * index }))
  await until('all are answered', () => bytes >= FRAMES * 12)
  assert.equal(server.session.streams, 10)
  assert.equal(server.streams.length, 10)
})

test('stream ids that skip many others cost one reset each', async (t) => {
  const { socket, server, frames } = await rawPeer(t, { maxStreams: 0 })
  // Neighbors of the jumps are unused, and can be opened later.
  await flood(socket, (index) => {
    const id = 1 + 4_096 * (index >> 1) + (index % 2 ? 0 : 2_046)
    return frame({ type: WINDOW_UPDATE, flags: SYN, id })
  })
  socket.write(frame({ type: PING, flags: SYN, length: 77 }))
  await until('everything is processed', () => frames().at(-1)?.length === 77)
  assert.ok(!server.session.isClosed)
  assert.equal(frames().filter(({ flags }) => flags === RST).length, FRAMES)
})
