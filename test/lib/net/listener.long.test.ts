// A listener, also on a port that others use.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type ListenOptions, Server } from 'node:net'
import { type TestContext, test } from 'node:test'
import { startListener } from '../../../src/lib/net/listener.ts'
import { atEnd } from '../../support/cleanup.ts'

/** A server that responds to every request with its name. */
async function startNamed(t: TestContext, name: string, port = 0, server = createServer()) {
  server.on('request', (_request, response) => response.end(name))
  const listener = await startListener(server, { host: '127.0.0.1', port })
  atEnd(t, async () => {
    await listener.close()
    server.closeAllConnections()
  })
  return listener
}

const fetchText = async (port: number) => (await fetch(`http://127.0.0.1:${port}/`)).text()

test('a port that another listener or server uses is not shared with it', async (t) => {
  const { address } = await startNamed(t, 'first')
  await assert.rejects(startNamed(t, 'second', address.port), { code: 'EADDRINUSE' })
  assert.equal(await fetchText(address.port), 'first')
  const plain = createServer().listen(0, '127.0.0.1')
  atEnd(t, () => plain.close())
  await once(plain, 'listening')
  const { port } = plain.address() as AddressInfo
  await assert.rejects(startNamed(t, 'second', port), { code: 'EADDRINUSE' })
})

test('connections that wait to be accepted when a listener is closed are served, and the port is free', async (t) => {
  const { address, close } = await startNamed(t, 'old')
  const { port } = address
  const received = Array.from({ length: 500 }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    return once(socket, 'data')
  })
  // Without a turn of the event loop, all of them wait in the queues of the system.
  await close()
  for (const [data] of await Promise.all(received)) assert.match(String(data), /^HTTP\/1.1 200/)
  await startNamed(t, 'new', port)
  assert.equal(await fetchText(port), 'new')
})

test('an accept error is reported once a minute, for each kind of error', async (t) => {
  const server = createServer()
  const reported: unknown[] = []
  const onError = (error: NodeJS.ErrnoException) => reported.push(error.code)
  const listener = await startListener(server, { host: '127.0.0.1', port: 0, onError })
  atEnd(t, () => listener.close())
  const start = performance.now()
  let elapsedMs = 0
  t.mock.method(performance, 'now', () => start + elapsedMs)
  const fail = (code: string) => server.emit('error', Object.assign(new Error(code), { code }))
  for (const code of ['EMFILE', 'EMFILE', 'ENFILE']) fail(code)
  elapsedMs = 59_999
  fail('EMFILE')
  assert.deepEqual(reported, ['EMFILE', 'ENFILE'])
  elapsedMs = 60_000
  for (const code of ['EMFILE', 'EMFILE']) fail(code)
  assert.deepEqual(reported, ['EMFILE', 'ENFILE', 'EMFILE'])
})

test('a listener works where a port cannot have several sockets', async (t) => {
  /** Like a server on a system without SO_REUSEPORT. */
  const server = Object.assign(createServer(), {
    listen(options: ListenOptions, onListening: () => void) {
      if (!options.reusePort) return Server.prototype.listen.call(server, options, onListening)
      const error = Object.assign(new Error('listen ENOTSUP'), { code: 'ENOTSUP' })
      process.nextTick(() => server.emit('error', error))
      return server
    },
  })
  const { address } = await startNamed(t, 'single', 0, server)
  assert.equal(await fetchText(address.port), 'single')
})
