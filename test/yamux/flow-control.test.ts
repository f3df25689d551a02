import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import type { SessionOptions } from '../../src/yamux/index.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { listen } from '../support/network/listen.ts'
import { until } from '../support/until.ts'
import {
  accepted,
  DATA,
  frame,
  rawPeer,
  readAll,
  SYN,
  sessionPair,
  socketPair,
  startSession,
  streamPair,
  WINDOW_UPDATE,
} from './support.ts'

const KIB = 1024
const INITIAL_WINDOW = 256 * KIB

test('a stream that nobody reads does not delay 50 others', async (t) => {
  const { client, server, near, far } = await streamPair(t)
  near.write(Buffer.alloc(4_000_000))
  await until('its window is full', () => far.unreadBytes === INITIAL_WINDOW)
  const body = Buffer.alloc(500_000, 'x')
  const others = Array.from({ length: 50 }, () => client.open())
  for (const stream of others) stream.end(body)
  await until('all are accepted', () => server.streams.length === 50)
  for (const received of await Promise.all(server.streams.map(readAll))) assert.deepEqual(received, body)
  assert.equal(far.unreadBytes, INITIAL_WINDOW)
  assert.equal(far.receiveWindow, INITIAL_WINDOW)
  far.resume()
  await once(near, 'drain')
})

test('a stalled reader stops the writer after a window: the rest stays with the writer', async (t) => {
  const { near, far } = await streamPair(t)
  let accepted = 0
  const chunk = Buffer.alloc(16 * KIB)
  const pump = () => near.write(chunk, () => void (++accepted < 1_000 && pump()))
  pump()
  await until('the window is full', () => far.unreadBytes === INITIAL_WINDOW)
  assert.equal(accepted, INITIAL_WINDOW / chunk.length)
  assert.equal(near.writableLength, chunk.length)
})

test('the memory of a chunk can be reused after the callback of its write', async (t) => {
  const [near, far] = await socketPair(t)
  const client = startSession(near, { role: 'client' })
  let sent = 0
  // More than the buffers of the system.
  for (let index = 0; index < 60; index += 1) {
    const chunk = Buffer.alloc(INITIAL_WINDOW, index)
    client.open().end(chunk, () => {
      sent += 1
      chunk.fill(255)
    })
  }
  await until('the connection is full', () => near.writableNeedDrain)
  assert.ok(sent < 60)
  const server = startSession(far, { role: 'server' })
  await until('all are accepted', () => server.streams.length === 60)
  const received = await Promise.all(server.streams.map(readAll))
  for (const [index, bytes] of received.entries())
    assert.ok(bytes.equals(Buffer.alloc(INITIAL_WINDOW, index)))
})

test('a small stream overtakes the queued data of a large one', async (t) => {
  const [near, far] = await socketPair(t)
  const client = startSession(near, { role: 'client' })
  const server = startSession(far, { role: 'server', windowMax: INITIAL_WINDOW })
  const large = Array.from({ length: 20 }, () => client.open())
  for (const stream of large) stream.write(Buffer.alloc(2_000_000))
  await until('all are accepted', () => server.streams.length === 20)
  for (const stream of server.streams) stream.resume()
  const [first] = server.streams
  assert.ok(first)
  const small = client.open()
  small.end('small')
  await until('it is accepted', () => server.streams.length === 21)
  await readAll(server.streams[20] as typeof first)
  assert.ok(server.streams.reduce((sum, { bytesRead }) => sum + bytesRead, 0) < 20 * 2_000_000)
})

test('a stream with little to send does not wait for the turns of those with much', async (t) => {
  const { socket, server, frames } = await rawPeer(t)
  const streams = Array.from({ length: 11 }, () => server.open())
  await until('all are announced', () => frames().length >= 12)
  const [small, ...large] = streams.map(({ id }) => id)
  // In one turn of the event loop, so that all of them wait for the same write.
  for (const stream of streams.slice(1)) stream.write(Buffer.alloc(INITIAL_WINDOW))
  streams[0]?.write('small')
  const sent = () => frames().filter(({ type }) => type === DATA)
  await until('all windows are full', () => {
    const bytes = sent().reduce((sum, { length }) => sum + length, 0)
    return bytes === 10 * INITIAL_WINDOW + 'small'.length
  })
  assert.equal(sent()[0]?.id, small)
  // The others take turns.
  const first = sent().slice(1, 11)
  assert.deepEqual(
    first.map(({ id }) => id),
    large,
  )
  socket.destroy()
})

test('a window update is sent when half of the window was read, not for every read', async (t) => {
  const { socket, server, frames } = await rawPeer(t)
  const updates = () =>
    frames().filter(({ type, id, length }) => type === WINDOW_UPDATE && id === 1 && length)
  socket.write(frame({ type: WINDOW_UPDATE, flags: SYN, id: 1 }))
  const stream = await accepted(server)
  stream.resume()
  for (let sent = 0; sent < INITIAL_WINDOW / 2; sent += KIB)
    socket.write(frame({ type: DATA, id: 1, payload: 'x'.repeat(KIB) }))
  await until('the update arrives', () => updates().length > 0)
  const [update] = updates()
  assert.equal(updates().length, 1)
  assert.ok(update && update.length >= INITIAL_WINDOW / 2)
})

/** Delays every byte, in both directions. */
async function startDelay(t: Test, target: Socket['remotePort'], ms: number): Promise<number> {
  const relay = createServer((near) => {
    const far = connect(Number(target), '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (chunk) => setTimeout(() => to.write(chunk), ms))
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.setNoDelay()
    }
    atEnd(t, () => near.destroy())
  })
  return listen(t, relay)
}

async function delayedPair(t: Test, ms: number, clientOptions: Partial<SessionOptions>) {
  const listener = createServer()
  const port = await startDelay(t, await listen(t, listener), ms)
  const near = connect(port, '127.0.0.1')
  const [far] = (await once(listener, 'connection')) as [Socket]
  atEnd(t, () => far.destroy())
  return {
    client: startSession(near, { ...clientOptions, role: 'client' }),
    server: startSession(far, { role: 'server' }),
  }
}

test('over a connection with 100 ms of round trip the window of a download grows to its limit', async (t) => {
  const { client, server } = await delayedPair(t, 50, { windowMax: 4 * 1024 * KIB })
  const download = client.open()
  download.write('GET')
  const upload = await accepted(server)
  const body = Buffer.alloc(20 * 1024 * KIB)
  upload.end(body)
  let received = 0
  let largest = 0
  download.on('data', (chunk: Buffer) => {
    received += chunk.length
    largest = Math.max(largest, download.receiveWindow)
  })
  await once(download, 'end')
  assert.equal(received, body.length)
  assert.equal(largest, 4 * 1024 * KIB)
})

test('a window grows at once to the size of the last one of the session that has grown', async (t) => {
  const { client, server } = await delayedPair(t, 50, { windowMax: 4 * 1024 * KIB })
  /** The sizes that the window of a download had. */
  async function download(): Promise<number[]> {
    const stream = client.open()
    stream.write('GET')
    const sizes = new Set<number>([stream.receiveWindow])
    stream.on('data', () => sizes.add(stream.receiveWindow))
    ;(await accepted(server)).end(Buffer.alloc(20 * 1024 * KIB))
    await once(stream, 'end')
    return [...sizes]
  }
  const [first, second] = [await download(), await download()]
  assert.ok(first.length > 2)
  assert.deepEqual(second.slice(0, 2), [INITIAL_WINDOW, first.at(-1)])
})

test('the windows of a session grow by its limit at most, and closed streams return their share', async (t) => {
  const { client, server } = await delayedPair(t, 10, { sessionWindowMax: 1024 * KIB })
  let largest = 0
  for (let round = 0; round < 2; round++) {
    const downloads = [client.open(), client.open(), client.open()]
    for (const stream of downloads) stream.end()
    await until('all are accepted', () => server.streams.length === 3)
    for (const stream of server.streams.splice(0)) stream.end(Buffer.alloc(6 * 1024 * KIB))
    largest = 0
    const growth = () => downloads.reduce((sum, { receiveWindow }) => sum + receiveWindow - INITIAL_WINDOW, 0)
    for (const stream of downloads)
      stream.on('data', () => {
        largest = Math.max(largest, growth())
      })
    await Promise.all(downloads.map((stream) => once(stream, 'end')))
    assert.equal(largest, 1024 * KIB)
  }
})

test('sessions that share a budget grow by it at most, and closed streams return their share', async (t) => {
  const totalGrowth = { bytesLeft: 1024 * KIB }
  const pairs = [await delayedPair(t, 10, { totalGrowth }), await delayedPair(t, 10, { totalGrowth })]
  const downloads = pairs.map(({ client }) => client.open())
  for (const stream of downloads) stream.end()
  for (const { server } of pairs) (await accepted(server)).end(Buffer.alloc(16 * 1024 * KIB))
  let largest = 0
  const growth = () => downloads.reduce((sum, { receiveWindow }) => sum + receiveWindow - INITIAL_WINDOW, 0)
  for (const stream of downloads)
    stream.on('data', () => {
      largest = Math.max(largest, growth())
    })
  await Promise.all(downloads.map((stream) => once(stream, 'end')))
  assert.equal(largest, 1024 * KIB)
  assert.equal(totalGrowth.bytesLeft, 1024 * KIB)
})

test('while memory is scarce, the window of a slow reader shrinks, and grows again afterwards', async (t) => {
  const pressure = { isHigh: true }
  const { near, far } = await streamPair(t, {}, { pressure })
  near.write(Buffer.alloc(8 * 1024 * KIB))
  await until('its window is full', () => far.unreadBytes === INITIAL_WINDOW)
  // Slower than a few round trips for each window.
  const reading = setInterval(() => far.read(), 250)
  atEnd(t, () => clearInterval(reading))
  await until('it is small', () => far.receiveWindow === 16 * KIB)
  await until('no more than the window is buffered', () => far.unreadBytes <= 16 * KIB)
  clearInterval(reading)
  pressure.isHigh = false
  far.resume()
  await once(near, 'drain')
  near.write(Buffer.alloc(8 * 1024 * KIB))
  await until('it is large again', () => far.receiveWindow >= INITIAL_WINDOW)
})

test('many tiny unread frames use memory in proportion to their bytes', async (t) => {
  const { socket, server } = await rawPeer(t)
  socket.write(frame({ type: WINDOW_UPDATE, flags: SYN, id: 1 }))
  const stream = await accepted(server)
  const tiny = Buffer.concat(Array(1_000).fill(frame({ type: DATA, id: 1, payload: 'x' })))
  for (let sent = 0; sent < 250_000; sent += 1_000) socket.write(tiny)
  await until('they arrive', () => stream.unreadBytes === 250_000)
  let chunks = 0
  stream.on('data', () => {
    chunks += 1
  })
  await until('they are read', () => stream.unreadBytes === 0)
  assert.ok(chunks < 100, `${chunks} chunks`)
})

test('reading with read(), also in small pieces, opens the window again', async (t) => {
  const { client, server } = await sessionPair(t)
  const near = client.open()
  near.end(Buffer.alloc(2_000_000, 'abc'))
  const far = await accepted(server)
  const pieces: Buffer[] = []
  far.on('readable', () => {
    for (let piece = far.read(1_000) ?? far.read(); piece; piece = far.read(1_000) ?? far.read())
      pieces.push(piece)
  })
  await once(far, 'end')
  assert.deepEqual(Buffer.concat(pieces), Buffer.alloc(2_000_000, 'abc'))
})
