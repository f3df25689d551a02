// Node's HTTP client and server use streams as their sockets.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  Agent,
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
} from 'node:http'
import type { Duplex } from 'node:stream'
import { test } from 'node:test'
import { atEnd, type Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'
import { readAll, sessionPair } from './support.ts'

async function startHttp(t: Test, listener: RequestListener) {
  const http = createServer(listener)
  const { client, server } = await sessionPair(
    t,
    {},
    { onStream: (stream) => http.emit('connection', stream) },
  )
  const agent = new Agent({ keepAlive: true, maxSockets: 10 })
  agent.createConnection = () => client.session.open()
  atEnd(t, () => agent.destroy())
  return { http, client, server, agent }
}

async function send(agent: Agent, options: { method?: string; path?: string; body?: Buffer | string } = {}) {
  const { method = 'GET', path = '/', body } = options
  const sent = request({ agent, method, path, host: 'example.test' })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: response.statusCode, body: await readAll(response) }
}

test('an agent reuses streams for requests, one after the other and at the same time', async (t) => {
  const { agent, server } = await startHttp(t, (incoming, response) => {
    incoming.resume()
    incoming.on('end', () => response.end(`path ${incoming.url}`))
  })
  for (let each = 0; each < 20; each++)
    assert.equal(String((await send(agent, { path: `/${each}` })).body), `path /${each}`)
  assert.equal(server.streams.length, 1)
  const responses = await Promise.all(
    Array.from({ length: 40 }, (_, each) => send(agent, { path: `/${each}` })),
  )
  for (const [each, { body }] of responses.entries()) assert.equal(String(body), `path /${each}`)
  assert.ok(server.streams.length <= 10)
})

test('bodies larger than the window are sent and received', async (t) => {
  const { agent } = await startHttp(t, (incoming, response) => void incoming.pipe(response))
  const body = Buffer.alloc(5_000_000, 'large body')
  assert.deepEqual((await send(agent, { method: 'POST', body })).body, body)
})

test('a response without a length ends with the stream', async (t) => {
  const { agent, server, client } = await startHttp(t, (_, response) => {
    response.sendDate = false
    response.useChunkedEncodingByDefault = false
    response.writeHead(200, { connection: 'close' })
    response.write(Buffer.alloc(1_000_000, 'x'))
    response.end('end')
  })
  const { body } = await send(agent)
  assert.equal(body.length, 1_000_003)
  await until('the stream is over', () => client.session.streams + server.session.streams === 0)
})

test('an upgraded connection carries bytes both ways, and each side ends on its own', async (t) => {
  const { http, agent } = await startHttp(t, (_, response) => void response.end())
  http.on('upgrade', (_: IncomingMessage, socket: Duplex) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n')
    socket.pipe(socket)
  })
  const sent = request({ agent, host: 'example.test', headers: { upgrade: 'echo', connection: 'upgrade' } })
  sent.end()
  const [, socket] = (await once(sent, 'upgrade')) as [IncomingMessage, Duplex]
  const body = Buffer.alloc(1_000_000, 'echo')
  socket.end(body)
  assert.deepEqual(await readAll(socket), body)
})

test('a request that the server aborts fails, and the session goes on', async (t) => {
  const { agent, client } = await startHttp(t, (incoming, response) => {
    if (incoming.url === '/abort') incoming.socket.destroy()
    else response.end('fine')
  })
  await assert.rejects(send(agent, { path: '/abort' }), { code: 'ECONNRESET' })
  assert.equal(String((await send(agent)).body), 'fine')
  assert.ok(!client.session.isClosed)
})

test('a client that gives up closes the connection of the server', async (t) => {
  const aborted = Promise.withResolvers<void>()
  const { agent } = await startHttp(t, (_, response) => {
    response.on('close', aborted.resolve)
    response.write('start')
  })
  const sent = request({ agent, host: 'example.test' })
  sent.on('error', () => {})
  sent.end()
  await once(sent, 'response')
  sent.destroy()
  await aborted.promise
})

test('an idle kept-alive stream is closed by the timeout of the server', async (t) => {
  const { http, agent, server } = await startHttp(t, (_, response) => void response.end('x'))
  ;(http as Server).keepAliveTimeout = 50
  ;(http as Server).keepAliveTimeoutBuffer = 0
  await send(agent)
  await until('the stream is closed', () => server.session.streams === 0)
  await send(agent)
  assert.equal(server.streams.length, 2)
})

test('a request timeout is reported', async (t) => {
  const { agent } = await startHttp(t, () => {})
  const sent = request({ agent, host: 'example.test', timeout: 50 })
  sent.on('error', () => {})
  sent.end()
  await once(sent, 'timeout')
  sent.destroy()
})
