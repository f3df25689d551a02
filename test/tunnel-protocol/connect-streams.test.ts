// Node gives what a read leaves of its buffer to the next read, which may be that of another connection:
// memory of what was sent may still be in use.
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { connectStreams } from '../../src/tunnel-protocol/connect-streams.ts'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'

const WRITES = 500
const DATA = randomBytes(64 * 1024)
/** Nearly a whole buffer of Node, so that little is left for others. */
const LARGE = [58_000, 65_000] as const
const SMALL = [100, 2_000] as const
/** TLS without a certificate. */
const TLS = { ciphers: 'PSK-AES128-GCM-SHA256', maxVersion: 'TLSv1.2' } as const
const psk = DATA.subarray(0, 32)

async function listen(t: TestContext, server: Server, path?: string): Promise<string | number> {
  server.listen(path ?? 0)
  await once(server, 'listening')
  atEnd(t, () => server.close())
  return path ?? (server.address() as AddressInfo).port
}

/** Sends parts of DATA, and resolves with their digest. */
async function send(socket: Socket, [min, max]: readonly [number, number]): Promise<string> {
  const hash = createHash('sha256')
  for (let index = 0; index < WRITES; index++) {
    const chunk = DATA.subarray(0, randomInt(min, max))
    hash.update(chunk)
    if (!socket.write(chunk)) await once(socket, 'drain')
    // So that it is read by itself.
    await sleep(1)
  }
  socket.end()
  return hash.digest('hex')
}

async function digest(socket: Socket): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of socket) hash.update(chunk)
  socket.end()
  return hash.digest('hex')
}

test('large reads are passed on, and other connections keep what shares their memory', async (t) => {
  const sent: Promise<string>[] = []
  const received: Promise<string>[] = []
  const source = (sizes: readonly [number, number]) => (socket: Socket) => void sent.push(send(socket, sizes))
  const pipe = await listen(t, createServer(source(LARGE)), join(createFolder(t), 'source.sock'))
  const tls = await listen(t, createTlsServer({ ...TLS, pskCallback: () => psk }, source(SMALL)))
  const sink = await listen(
    t,
    createServer((socket) => void received.push(digest(socket))),
  )
  const sources = [
    connect({ path: String(pipe) }),
    connect({ path: String(pipe) }),
    connectTls({
      ...TLS,
      port: Number(tls),
      pskCallback: () => ({ psk, identity: 'test' }),
      checkServerIdentity: () => undefined,
    }),
  ]
  for (const from of sources) connectStreams(from, connect({ port: Number(sink) }))
  await Promise.all(sources.map((from) => once(from, 'close')))
  assert.equal(received.length, sources.length)
  assert.deepEqual((await Promise.all(received)).toSorted(), (await Promise.all(sent)).toSorted())
})
