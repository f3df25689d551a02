import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { until } from '../support/until.ts'
import {
  accepted,
  frame,
  GO_AWAY,
  PING,
  RST,
  rawPeer,
  readAll,
  SYN,
  sessionPair,
  streamPair,
  WINDOW_UPDATE,
} from './support.ts'

test('what was written before goAway and close is received before them', async (t) => {
  const received: string[] = []
  const { server, near, far } = await streamPair(t, { onGoAway: () => received.push('goAway') })
  near.on('data', (chunk) => received.push(String(chunk)))
  near.on('error', () => received.push('reset'))
  far.on('error', () => undefined)
  far.write('first')
  await until('it flows', () => received.length > 0)
  far.write('last')
  server.session.close()
  await until('reset', () => received.includes('reset'))
  assert.deepEqual(received, ['first', 'last', 'goAway', 'reset'])
})

test('after goAway streams continue, and the peer opens no more', async (t) => {
  let isTold = false
  const { client, server, near, far } = await streamPair(t, {
    onGoAway: () => {
      isTold = true
    },
  })
  server.session.goAway()
  // Opened before the client learns of it.
  const late = client.open()
  late.end('late')
  const stream = await accepted(server)
  assert.equal(String(await readAll(stream)), 'late')
  await until('the client learns it', () => isTold)
  assert.ok(client.session.isGoingAway)
  assert.throws(() => client.session.open(), /does not accept new streams/)
  // The server may still open streams.
  assert.ok(!server.session.isGoingAway)
  server.open().end('still')
  assert.equal(String(await readAll(await accepted(client))), 'still')
  near.end('last request')
  assert.equal(String(await readAll(far)), 'last request')
  far.end('last response')
  assert.equal(String(await readAll(near)), 'last response')
  server.session.close()
  assert.equal(await client.closed, undefined)
  assert.equal(await server.closed, undefined)
})

test('closing a session destroys its streams on both sides', async (t) => {
  const { client, server, near, far } = await streamPair(t)
  const ends = [near, far].map((stream) => new Promise((resolve) => stream.once('close', resolve)))
  client.session.close()
  client.session.close()
  await Promise.all(ends)
  assert.equal(await client.closed, undefined)
  await server.closed
  assert.ok(client.session.isClosed && server.session.isClosed)
  assert.throws(() => client.open(), /is closed/)
  await assert.rejects(client.session.ping(), /is closed/)
  assert.equal(client.session.streams + server.session.streams, 0)
})

test('a session that is closed with a reason reports an error to the peer', async (t) => {
  const { client, server } = await sessionPair(t)
  client.session.close(new Error('out of memory'))
  assert.equal((await client.closed)?.message, 'out of memory')
  assert.match(String(await server.closed), /The peer closed the session: internal error/)
})

test('a connection that is lost closes the session and its streams with an error', async (t) => {
  const { socket, server } = await rawPeer(t)
  socket.write(frame({ type: WINDOW_UPDATE, flags: SYN, id: 1 }))
  const stream = await accepted(server)
  const closed = new Promise((resolve) => stream.once('close', resolve))
  socket.destroy()
  assert.match(String(await server.closed), /ended with 1 open streams|ECONNRESET/)
  await closed
  assert.ok(stream.errored)
})

test('a connection that the peer ends without open streams is an orderly close', async (t) => {
  const { socket, server } = await rawPeer(t)
  socket.end()
  assert.equal(await server.closed, undefined)
})

test('a ping is answered with its value, and its round trip is measured', async (t) => {
  const { socket, frames } = await rawPeer(t)
  socket.write(frame({ type: PING, flags: SYN, length: 0xfedcba98 }))
  await until('the response', () =>
    frames().some(({ flags, length }) => flags === 2 && length === 0xfedcba98),
  )
  const { client } = await sessionPair(t)
  assert.ok((await client.session.ping()) >= 0)
})

test('pings without a response are limited, and fail when the session closes', async (t) => {
  const { server } = await rawPeer(t)
  const pings = Array.from({ length: 20 }, () => server.session.ping())
  const results = Promise.allSettled(pings)
  await assert.rejects(pings.at(-1) as Promise<number>, /pings have no response yet/)
  server.session.close()
  assert.ok((await results).every(({ status }) => status === 'rejected'))
})

test('keep-alive closes the session of a peer that stopped reading', async (t) => {
  const { socket, server } = await rawPeer(t, { keepAlive: { intervalMs: 20, timeoutMs: 100 } })
  socket.pause()
  assert.match(String(await server.closed), /Keep-alive timeout/)
})

test('keep-alive keeps the session of an idle peer that answers', async (t) => {
  const options = { keepAlive: { intervalMs: 10, timeoutMs: 2_000 } }
  const { client, server } = await sessionPair(t, options, options)
  const { socket, frames } = await rawPeer(t, options)
  let answered = 0
  socket.on('data', () => {
    const pings = frames().filter(({ type, flags }) => type === PING && flags === SYN)
    for (const { length } of pings.slice(answered)) socket.write(frame({ type: PING, flags: 2, length }))
    answered = pings.length
  })
  await until('some pings were answered', () => answered > 5)
  assert.ok(!client.session.isClosed && !server.session.isClosed)
})

test('streams above the limit are reset, and others work', async (t) => {
  const { client, server } = await sessionPair(t, {}, { maxStreams: 2 })
  const kept = [client.open(), client.open()]
  const rejected = client.open()
  const [error] = await once(rejected, 'error')
  assert.equal(error.code, 'ECONNRESET')
  assert.equal(server.streams.length, 2)
  for (const stream of [...kept, ...server.streams]) {
    stream.resume()
    stream.end()
  }
  await until('they are over', () => server.session.streams === 0)
  client.open().end('now')
  await until('there is room again', () => server.streams.length === 3)
})

test('a closed session tells the peer with a GoAway frame', async (t) => {
  const { server, frames } = await rawPeer(t)
  server.session.close()
  await until('GoAway', () => frames().some(({ type, length }) => type === GO_AWAY && length === 0))
  assert.ok(!frames().some(({ flags }) => flags === RST))
})
