// What HTTP offers works through a tunnel as without one.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { connectClient, type Handlers, startTunneled } from '../../support/edges/tunneled.ts'
import { fetchHost, openSocket } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'

const handlers: Handlers = {}
const { edge, host, server } = await startTunneled({ after }, handlers)

/** Sends requests over one connection, so that each also shows that the one before left it intact. */
function openConnection(t: Test) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  atEnd(t, () => agent.destroy())
  function send(method: string, path: string, headers: Record<string, string> = {}) {
    const target = { host: '127.0.0.1', port: edge.port, agent }
    const sent = request({ ...target, method, path, headers: { host, ...headers } })
    const response = once(sent, 'response').then(([received]) => received as IncomingMessage)
    return { sent, response }
  }
  async function assertNextWorks(): Promise<void> {
    const { sent, response } = send('GET', '/next')
    sent.end()
    assert.equal(await readText(await response), '/next')
  }
  return { send, assertNextWorks }
}

async function readText(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response) text += chunk
  return text
}

test('WebSockets: text, binary, ping, and the code and reason of a close, in both directions', async () => {
  const sockets = new WebSocketServer({ server })
  after(() => sockets.close())
  sockets.on('connection', (socket) => {
    socket.on('message', (data, binary) => {
      if (String(data) === 'close') socket.close(4001, 'from the server')
      else socket.send(data, { binary })
    })
  })
  const socket = await openSocket(edge, host)
  for (const message of ['text', Buffer.alloc(1_000_000, 7), Buffer.alloc(0)]) {
    socket.send(message)
    const [data, binary] = (await once(socket, 'message')) as [Buffer, boolean]
    assert.equal(binary, typeof message !== 'string')
    assert.deepEqual(data, Buffer.from(message))
  }
  socket.ping('mark')
  assert.equal(String((await once(socket, 'pong'))[0]), 'mark')
  socket.send('close')
  const [code, reason] = await once(socket, 'close')
  assert.deepEqual([code, String(reason)], [4001, 'from the server'])

  const closing = await openSocket(edge, host)
  const [atServer] = [...sockets.clients].filter(({ readyState }) => readyState === closing.OPEN)
  closing.close(4002, 'from the client')
  assert.ok(atServer)
  const [clientCode, clientReason] = await once(atServer, 'close')
  assert.deepEqual([clientCode, String(clientReason)], [4002, 'from the client'])
})

test('server-sent events arrive one by one, as they are sent, and the headers before the first', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  let events: ServerResponse | undefined
  handlers['/events'] = (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    events = response
  }
  const { sent, response } = send('GET', '/events')
  sent.end()
  const stream = await response
  for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
    events?.write(event)
    assert.equal(String((await once(stream, 'data'))[0]), event)
  }
  events?.end()
  await once(stream, 'end')
  await assertNextWorks()
})

test('a request that expects 100-continue sends its body after it', async (t) => {
  const { send } = openConnection(t)
  const { sent, response } = send('POST', '/expects', { expect: '100-continue', 'content-length': '4' })
  sent.flushHeaders()
  await once(sent, 'continue')
  sent.end('body')
  assert.equal(await readText(await response), '/expects')
})

test('chunks go both ways while request and response are in progress', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  handlers['/echo'] = (incoming, response) => void incoming.pipe(response)
  const { sent, response } = send('POST', '/echo', { 'transfer-encoding': 'chunked' })
  sent.write('first')
  const echo = await response
  assert.equal(String((await once(echo, 'data'))[0]), 'first')
  sent.write('second')
  assert.equal(String((await once(echo, 'data'))[0]), 'second')
  sent.end()
  await once(echo, 'end')
  await assertNextWorks()
})

test('trailers arrive in both directions, but none that could change how the message is understood', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  let seen: IncomingMessage | undefined
  handlers['/trailers'] = async (incoming, response) => {
    seen = incoming
    response.writeHead(200, { trailer: 'x-mark', 'transfer-encoding': 'chunked' })
    response.write(await readText(incoming))
    response.addTrailers({ 'x-mark': 'response', 'set-cookie': 'a=b' })
    response.end()
  }
  const { sent, response } = send('POST', '/trailers', { trailer: 'x-mark', 'transfer-encoding': 'chunked' })
  sent.write('in ')
  sent.addTrailers({ 'x-mark': 'request', host: 'other.tunnels.test', authorization: 'Bearer x' })
  sent.end('chunks')
  const received = await response
  assert.equal(await readText(received), 'in chunks')
  assert.deepEqual({ ...received.trailers }, { 'x-mark': 'response' })
  assert.deepEqual({ ...seen?.trailers }, { 'x-mark': 'request' })
  assert.equal(received.headers['x-mark'] ?? seen?.headers['x-mark'], undefined)
  assert.equal(seen?.headers.host, host)
  await assertNextWorks()
})

test('responses to HEAD, 204 and 304 have no body, and keep their headers', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  handlers['/head'] = (_request, response) => response.writeHead(200, { 'content-length': '1000' }).end()
  handlers['/204'] = (_request, response) => response.writeHead(204, { etag: '"1"' }).end()
  handlers['/304'] = (_request, response) =>
    response.writeHead(304, { etag: '"1"', 'content-length': '1000' }).end()
  for (const [method, path, headers] of [
    ['HEAD', '/head', { 'content-length': '1000' }],
    ['HEAD', '/unknown', {}],
    ['GET', '/204', { etag: '"1"' }],
    ['GET', '/304', { etag: '"1"', 'content-length': '1000' }],
  ] as const) {
    const { sent, response } = send(method, path)
    sent.end()
    const received = await response
    assert.equal(await readText(received), '', path)
    for (const [name, value] of Object.entries(headers)) assert.equal(received.headers[name], value, path)
    await assertNextWorks()
  }
})

test('large bodies arrive unchanged in both directions, also if they are read slowly', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  handlers['/echo'] = (incoming, response) => incoming.pipe(response)
  const body = randomBytes(6_000_000)
  for (const headers of [{ 'content-length': String(body.length) }, {}]) {
    const { sent, response } = send('POST', '/echo', headers)
    sent.end(body)
    const received: Buffer[] = []
    for await (const chunk of await response) {
      received.push(chunk)
      if (received.length % 16 === 0) await sleep(2)
    }
    assert.ok(Buffer.concat(received).equals(body))
    await assertNextWorks()
  }
})

test('a response that begins during the upload arrives, and the upload continues', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  const { promise: uploaded, resolve } = Promise.withResolvers<number>()
  handlers['/early'] = (incoming, response) => {
    response.writeHead(200)
    response.write('early')
    let bytes = 0
    incoming.on('data', (chunk) => {
      bytes += chunk.length
    })
    incoming.once('end', () => {
      resolve(bytes)
      response.end()
    })
  }
  const { sent, response } = send('POST', '/early', { 'content-length': '2000000' })
  sent.write(Buffer.alloc(1_000_000))
  const received = await response
  assert.equal(String((await once(received, 'data'))[0]), 'early')
  sent.end(Buffer.alloc(1_000_000))
  assert.equal(await uploaded, 2_000_000)
  await once(received, 'end')
  await assertNextWorks()
})

test('a complete response during an upload ends the request, and the rest of the body is discarded', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  handlers['/rejects'] = (_request, response) => response.writeHead(413).end('too large')
  const { sent, response } = send('POST', '/rejects', { 'content-length': '3000000' })
  sent.write(Buffer.alloc(1_000_000))
  const received = await response
  assert.equal(received.statusCode, 413)
  assert.equal(await readText(received), 'too large')
  sent.end(Buffer.alloc(2_000_000))
  await assertNextWorks()
})

test('a response that is delimited by the close of its connection arrives whole', async (t) => {
  const { send, assertNextWorks } = openConnection(t)
  handlers['/until-close'] = (incoming) => {
    incoming.socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n')
    incoming.socket.end(Buffer.alloc(500_000, 'c'))
  }
  const { sent, response } = send('GET', '/until-close')
  sent.end()
  assert.equal((await readText(await response)).length, 500_000)
  await assertNextWorks()
})

test('pipelined requests get their responses in order', async () => {
  const paths = Array.from({ length: 20 }, (_, index) => `/pipelined/${index}`)
  const client = connectClient(
    edge.port,
    paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join(''),
  )
  await until('all have responses', () => client.received().includes('/pipelined/19'))
  assert.deepEqual(client.received().match(/\/pipelined\/\d+/g), paths)
  client.socket.destroy()
})

test('a client that half-closes after its request is responded to or disconnected, not kept waiting', async () => {
  const client = connectClient(edge.port, `GET /half HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  client.socket.end()
  await client.closed
  client.socket.destroy()
  assert.equal((await fetchHost(edge, host, { path: '/next' })).status, 200)
})
