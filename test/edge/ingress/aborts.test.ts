// Requests that the client or the local server aborts at any stage: the other side notices, and the next
// request works.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage, RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { after, afterEach, test } from 'node:test'
import { connectClient, type Handlers, startTunneled } from '../../support/edges/tunneled.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'

const handlers: Handlers = {}
const { edge, host, tunnel } = await startTunneled({ after }, handlers)

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`

afterEach(async () => {
  assert.equal(String((await fetchHost(edge, host, { path: '/next' })).body), '/next')
  assert.deepEqual([edge.child.exitCode, tunnel.child.exitCode], [null, null])
})

const reset = (socket: Socket) => socket.resetAndDestroy()
const closes = { 'a close': (socket: Socket) => socket.destroy(), 'a reset': reset }

/** When the client aborts: what it has sent, and what the local server has done with it. */
const clientStages: Record<string, { bytes: string; handler: RequestListener }> = {
  'before the response': { bytes: get('/stage'), handler: () => {} },
  'in the middle of its body': {
    bytes: `POST /stage HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(50_000)}`,
    handler: (request) => void request.resume(),
  },
  'in the middle of a chunk': {
    bytes: `POST /stage HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nhalf`,
    handler: (request) => void request.resume(),
  },
  'in the middle of the response': {
    bytes: get('/stage'),
    handler: (_request, response) => void response.writeHead(200).write('begun'),
  },
  'while it reads nothing': {
    bytes: get('/stage'),
    handler: (_request, response) => void response.end(Buffer.alloc(20_000_000)),
  },
}

for (const [stage, { bytes, handler }] of Object.entries(clientStages))
  for (const [how, close] of Object.entries(closes))
    test(`the local server notices ${how} by the client ${stage}`, async () => {
      const { promise: received, resolve } = Promise.withResolvers<IncomingMessage>()
      handlers['/stage'] = (request, response) => {
        handler(request, response)
        resolve(request)
      }
      const client = connectClient(edge.port, bytes)
      if (stage === 'while it reads nothing') client.socket.pause()
      const request = await received
      const noticed = new Promise((resolve) => request.socket.once('close', resolve))
      if (stage === 'in the middle of the response')
        await until('the response has begun', () => client.received().includes('begun'))
      close(client.socket)
      await noticed
      if (bytes.startsWith('POST')) assert.equal(request.complete, false)
    })

test('a request that is aborted in the middle of its headers does not reach the local server', async () => {
  let reached = false
  handlers['/unfinished'] = (_request, response) => {
    reached = true
    response.end()
  }
  for (const close of Object.values(closes)) {
    const client = connectClient(edge.port, get('/unfinished').slice(0, -2))
    await once(client.socket, 'connect')
    close(client.socket)
  }
  assert.equal((await fetchHost(edge, host)).status, 200)
  assert.equal(reached, false)
})

/** What the local server sends before it aborts. */
const serverStages = {
  'before the response': '',
  'in the middle of the status': 'HTTP/1.1 2',
  'in the middle of the headers': 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Ha',
  'after an informational response': 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n',
}
const localCloses = { 'a close': (socket: Socket) => socket.end(), 'a reset': reset }

/** Writes bytes to the connection of the request, and aborts it when they are sent. */
const respondPartly =
  (bytes: string, close: (socket: Socket) => void): RequestListener =>
  ({ socket }) => {
    socket.write(bytes, () => close(socket))
  }

for (const [stage, bytes] of Object.entries(serverStages))
  for (const [how, close] of Object.entries(localCloses))
    test(`the client gets 502 after ${how} by the local server ${stage}`, async () => {
      handlers['/fails'] = respondPartly(bytes, close)
      const { status } = await fetchHost(edge, host, {
        path: '/fails',
        method: 'POST',
        body: Buffer.from('x'),
      })
      assert.equal(status, 502)
    })

const bodies = {
  'with a length': 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun',
  'in chunks': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n',
  'in the middle of a chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nbegun',
}

for (const [kind, bytes] of Object.entries(bodies))
  for (const [how, close] of Object.entries(localCloses))
    test(`a response ${kind} that ends early by ${how} is incomplete for the client too`, async () => {
      handlers['/fails'] = respondPartly(bytes, close)
      await assert.rejects(fetchHost(edge, host, { path: '/fails' }), /aborted|ECONNRESET|hang up/)
    })

test('a response without a length is incomplete for the client if its connection is reset', async () => {
  let local: Socket | undefined
  handlers['/fails'] = ({ socket }) => {
    local = socket
    socket.write(`HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(1000)}`)
  }
  const client = connectClient(edge.port, get('/fails'))
  await until('the response has begun', () => client.received().includes('xxx'))
  local?.resetAndDestroy()
  await client.closed
  client.socket.destroy()
  assert.doesNotMatch(client.received(), /\r\n0\r\n\r\n$/)
})

test('the client gets 502 or a close if the local server resets an upload that it does not read', async () => {
  handlers['/fails'] = ({ socket }) => {
    socket.pause()
    setImmediate(() => socket.resetAndDestroy())
  }
  const client = connectClient(
    edge.port,
    `POST /fails HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 50000000\r\n\r\n`,
  )
  client.socket.write(Buffer.alloc(5_000_000))
  await until('there is a response or a close', () => client.received() !== '' || client.socket.destroyed)
  assert.match(client.received(), /^HTTP\/1\.1 502 |^$/)
  client.socket.destroy()
})
