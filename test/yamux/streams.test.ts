import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import {
  ACK,
  accepted,
  DATA,
  FIN,
  frame,
  RST,
  rawPeer,
  readAll,
  SYN,
  sessionPair,
  streamPair,
  WINDOW_UPDATE,
} from './support.ts'

test('bytes arrive in order, in both directions, and an ended side still receives', async (t) => {
  const { client, server } = await sessionPair(t)
  const near = client.open()
  near.end('request')
  const far = await accepted(server)
  assert.equal(String(await readAll(far)), 'request')
  const response = Buffer.alloc(3_000_000, 'response')
  far.end(response)
  assert.deepEqual(await readAll(near), response)
  await until('both sides forget the stream', () => client.session.streams + server.session.streams === 0)
})

test('the side that accepted a stream can end first, and still receives', async (t) => {
  const { near, far, client, server } = await streamPair(t)
  far.end('greeting')
  assert.equal(String(await readAll(near)), 'greeting')
  near.write('late ')
  near.end('request')
  assert.equal(String(await readAll(far)), 'late request')
  await until('both sides forget the stream', () => client.session.streams + server.session.streams === 0)
})

test('a stream that the server opens has an even id and works the same', async (t) => {
  const { client, server } = await sessionPair(t)
  const near = server.open()
  assert.equal(near.id, 2)
  near.end('hello')
  const far = await accepted(client)
  assert.equal(String(await readAll(far)), 'hello')
  far.end()
  await readAll(near)
})

test('writes of one tick leave in one frame, with SYN and FIN', async (t) => {
  const { socket, server, frames } = await rawPeer(t)
  const stream = server.open()
  stream.cork()
  stream.write('one ')
  stream.write('two ')
  stream.uncork()
  stream.end()
  await until('the frame arrives', () => frames().some(({ type }) => type === DATA))
  const [data] = frames().filter(({ id }) => id === 2)
  assert.deepEqual(data, { version: 0, type: DATA, flags: SYN | FIN, id: 2, length: 8 })
  socket.write(frame({ type: WINDOW_UPDATE, flags: ACK | FIN, id: 2 }))
  await until('the stream is over', () => server.session.streams === 0)
})

test('a stream is acknowledged at once, with the first data if there is some', async (t) => {
  const { socket, frames } = await rawPeer(t, {
    onStream: (stream) => void (stream.id === 3 && stream.write('hello')),
  })
  socket.write(frame({ type: WINDOW_UPDATE, flags: SYN, id: 1 }))
  socket.write(frame({ type: DATA, flags: SYN, id: 3, payload: 'hi' }))
  await until('both are acknowledged', () => frames().filter(({ flags }) => flags === ACK).length === 2)
  const acknowledgments = frames().filter(({ id }) => id > 0)
  assert.deepEqual(
    acknowledgments.map(({ type, id, flags, length }) => ({ type, id, flags, length })),
    [
      { type: WINDOW_UPDATE, id: 1, flags: ACK, length: 0 },
      { type: DATA, id: 3, flags: ACK, length: 5 },
    ],
  )
})

test('destroying a stream resets it: the other side gets ECONNRESET, and no other stream is affected', async (t) => {
  const { client, server, near, far } = await streamPair(t)
  const other = client.open()
  const otherFar = await accepted(server)
  far.write('never read')
  near.destroy()
  const [error] = await once(far, 'error')
  assert.equal(error.code, 'ECONNRESET')
  assert.ok(far.destroyed)
  other.end('still here')
  assert.equal(String(await readAll(otherFar)), 'still here')
  assert.equal(server.session.streams, 1)
})

test('a write in progress fails when the stream is reset', async (t) => {
  const { near, far } = await streamPair(t)
  const failed = new Promise<Error | null | undefined>((resolve) =>
    near.write(Buffer.alloc(1_000_000), resolve),
  )
  await until('the window is full', () => far.unreadBytes === 256 * 1024)
  far.destroy()
  assert.ok((await failed) instanceof Error)
})

test('a stream that is closed after its FIN does not discard what it sent', async (t) => {
  const { near, far, server, client } = await streamPair(t)
  near.write('a request that is never read')
  await until('it arrived', () => far.unreadBytes > 0)
  far.end('response')
  far.destroySoon()
  assert.equal(String(await readAll(near)), 'response')
  assert.equal(server.session.streams, 0)
  near.write('more')
  const [error] = await once(near, 'error')
  assert.equal(error.code, 'ECONNRESET')
  assert.equal(client.session.streams, 0)
})

test('a writer that waits for a window learns that the other side closed', async (t) => {
  const { near, far } = await streamPair(t)
  near.write(Buffer.alloc(1_000_000))
  await until('the window is full', () => far.unreadBytes === 256 * 1024)
  far.end('response')
  far.destroySoon()
  const [error] = await once(near, 'error')
  assert.equal(error.code, 'ECONNRESET')
})

test('a stream that is destroyed before anything was sent is never announced', async (t) => {
  const { server, frames } = await rawPeer(t)
  server.open().destroy()
  server.open().end('x')
  await until('the second stream arrives', () => frames().some(({ id }) => id === 4))
  assert.ok(!frames().some(({ id, flags }) => id === 2 || flags === RST))
})

test('a session opens any number of streams, also concurrently', async (t) => {
  const { client, server } = await sessionPair(t)
  const opened = Array.from({ length: 500 }, () => client.open())
  for (const [index, stream] of opened.entries()) stream.end(`stream ${index}`)
  await until('all are accepted', () => server.streams.length === 500)
  for (const [index, stream] of server.streams.entries())
    assert.equal(String(await readAll(stream)), `stream ${index}`)
})

test('consecutive frames of a stream in one chunk are read at once, in order with those of others', async (t) => {
  const { server, socket } = await rawPeer(t)
  const read = new Map<number, string[]>()
  socket.write(
    Buffer.concat([
      frame({ type: DATA, flags: SYN, id: 1, payload: 'one ' }),
      frame({ type: DATA, flags: 0, id: 1, payload: 'two ' }),
      frame({ type: DATA, flags: SYN, id: 3, payload: 'other ' }),
      frame({ type: DATA, flags: 0, id: 1, payload: 'three ' }),
      frame({ type: WINDOW_UPDATE, id: 1, length: 1 }),
      frame({ type: DATA, flags: 0, id: 1, payload: 'four ' }),
      frame({ type: DATA, flags: FIN, id: 1, payload: 'five' }),
      frame({ type: DATA, flags: FIN, id: 3, payload: 'end' }),
    ]),
  )
  await until('both streams are accepted', () => server.streams.length === 2)
  for (const stream of server.streams) {
    const chunks: string[] = []
    read.set(stream.id, chunks)
    stream.on('data', (chunk) => chunks.push(String(chunk)))
  }
  await until('both have ended', () => server.streams.every(({ readableEnded }) => readableEnded))
  assert.equal(read.get(1)?.join(''), 'one two three four five')
  assert.equal(read.get(3)?.join(''), 'other end')
})
