// What reaches the port for other edges: strangers, peers with wrong keys, and peers that do not keep to the
// protocol. They are rejected, and requests are still forwarded.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectTcp, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { connect, createServer, getCACertificates, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { toConnection } from '../../../src/edge/peers/connection.ts'
import { presentIdentity, rejectCertificate, TLS_OPTIONS } from '../../../src/edge/peers/psk.ts'
import { Session, type YamuxStream } from '../../../src/yamux/index.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { PeerEdges, pairSecret } from '../../support/edges/peer-edges.ts'
import { openRawTunnel } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { makeCertificate } from '../../support/proxies/certificates.ts'
import { until } from '../../support/until.ts'

const cluster = await PeerEdges.create({ after })
const serving = await cluster.start('edge_serving')
const entry = await cluster.start('edge_entry')
const client = await openRawTunnel(serving, cluster.key, { name: 'app' })
after(() => client.close())
client.respond('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
/** A peer whose bytes the test sends. */
const HOSTILE = 'edge_hostile'
cluster.addresses.set(HOSTILE, '127.0.0.1:9')

const isForwarding = async () => (await fetchHost(entry, client.host)).status === 200

const identify = (from: string, to: string, secret = pairSecret(from, to)) =>
  presentIdentity({ ...cluster.view(from) }, { id: to, address: '', secrets: [secret] }) as {
    identity: string
    psk: Buffer
  }

/** Resolves with the socket after the handshake, or rejects. */
async function dial(t: Test, identity?: { identity: string; psk: Buffer }): Promise<TLSSocket> {
  const socket = connect({
    ...TLS_OPTIONS,
    host: '127.0.0.1',
    port: serving.peerPort,
    checkServerIdentity: rejectCertificate,
    ...(identity && { pskCallback: () => identity }),
  })
  atEnd(t, () => socket.destroy())
  await once(socket, 'secureConnect')
  socket.on('error', () => {})
  return socket
}

const right = identify(HOSTILE, 'edge_serving')

test('a peer needs the key of its pair', async (t) => {
  await dial(t, right)
  const rejected: [string, Parameters<typeof dial>[1]][] = [
    ['no key', undefined],
    ['a wrong key with the identity of the right one', { ...right, psk: randomBytes(32) }],
    ['another key', identify(HOSTILE, 'edge_serving', randomBytes(32))],
    ['the key of another pair', identify(HOSTILE, 'edge_serving', pairSecret(HOSTILE, 'edge_entry'))],
    ['an edge of another group', identify('edge_stranger', 'edge_serving')],
    ['an identity for another edge', identify(HOSTILE, 'edge_entry')],
    ['an identity of the edge itself', identify('edge_serving', HOSTILE)],
    ['an identity that is none', { ...right, identity: 'x'.repeat(100) }],
  ]
  for (const [what, identity] of rejected) await assert.rejects(dial(t, identity), Error, what)
  assert.ok(await isForwarding())
})

test('the previous key of a pair is accepted, and no older one', async (t) => {
  const before = cluster.secrets
  atEnd(t, () => {
    cluster.secrets = before
  })
  cluster.secrets = (a, b) => [pairSecret(a, b, 2), pairSecret(a, b, 1)]
  await dial(t, identify(HOSTILE, 'edge_serving', pairSecret(HOSTILE, 'edge_serving', 1)))
  await assert.rejects(dial(t, identify(HOSTILE, 'edge_serving', pairSecret(HOSTILE, 'edge_serving', 0))))
})

test('a server without the key is no peer', async (t) => {
  const server = createServer({ ...TLS_OPTIONS, pskCallback: () => randomBytes(32) })
  const port = await listen(t, server)
  server.on('tlsClientError', () => {})
  cluster.addresses.set('edge_false', `127.0.0.1:${port}`)
  cluster.locate('false.acme.tunnels.test', 'edge_false')
  assert.equal((await fetchHost(entry, 'false.acme.tunnels.test')).status, 503)
})

test('a certificate does not replace the key, whichever authority has signed it', async (t) => {
  const files = makeCertificate(t, 'IP:127.0.0.1')
  if (!files) return t.skip('openssl is not installed')
  const [cert, key] = [readFileSync(files.certificate, 'utf8'), readFileSync(files.key)]
  const trusted = getCACertificates('default')
  atEnd(t, () => setDefaultCACertificates(trusted))
  setDefaultCACertificates([cert])
  const server = createServer({ ...TLS_OPTIONS, cert, key })
  const port = await listen(t, server)
  server.on('tlsClientError', () => {})
  const socket = connect({ port, host: '127.0.0.1' })
  await once(socket, 'secureConnect')
  assert.ok(socket.authorized)
  socket.destroy()
  cluster.addresses.set('edge_certified', `127.0.0.1:${port}`)
  cluster.locate('certified.acme.tunnels.test', 'edge_certified')
  assert.equal((await fetchHost(entry, 'certified.acme.tunnels.test')).status, 503)
})

test('garbage and handshakes that do not end are closed, and peers still connect', async (t) => {
  const open = new Set<Socket>()
  for (let index = 0; index < 200; index += 1) {
    const socket = connectTcp(serving.peerPort, '127.0.0.1')
    open.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => open.delete(socket))
    socket.write(index % 2 === 0 ? randomBytes(500) : '')
  }
  atEnd(t, () => {
    for (const socket of open) socket.destroy()
  })
  // Fewer than the limit of handshakes are left, of which none ends.
  await until('the oldest are closed', () => open.size <= 64)
  await dial(t, right)
  assert.ok(await isForwarding())
})

/** A session of the hostile peer, with its control stream. */
async function openSession(t: Test) {
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const session = new Session(toConnection(await dial(t, right)), {
    role: 'client',
    onStream: (stream) => stream.destroy(),
    onClose: () => resolve(),
  })
  const open = (): YamuxStream => session.open().on('error', () => {})
  const control = open()
  const lines: string[] = []
  control.on('data', (chunk) => lines.push(...String(chunk).trim().split('\n')))
  return { control, lines, closed, open }
}

const LINES = {
  'no JSON': 'x\n',
  'an array': '[]\n',
  'an unknown message': '{}\n',
  'a host that is a number': '{"describe":1}\n',
  'a long host': `{"describe":"${'x'.repeat(5_000)}"}\n`,
  'a line without an end': 'x'.repeat(300_000),
  'a request without fields': '{"client":"x","request":{}}\n',
  'a negative revision': '{"applied":"x","revision":-1}\n',
  'more hosts than an edge caches': Array.from({ length: 10_001 }, (_, n) => `{"describe":"${n}"}\n`).join(
    '',
  ),
}

for (const [what, text] of Object.entries(LINES))
  test(`a peer that sends ${what} is disconnected`, async (t) => {
    const { control, closed } = await openSession(t)
    control.write(text)
    await closed
    assert.ok(await isForwarding())
  })

const HEADS = {
  'a head that is too long': Buffer.alloc(100, 0xff),
  'a head that is no JSON': Buffer.from('\x00\x01x'),
  'a head without a client': Buffer.from('\x00\x0c{"host":"x"}'),
}

for (const [what, bytes] of Object.entries(HEADS))
  test(`a peer that sends ${what} is disconnected`, async (t) => {
    const { control, closed, open } = await openSession(t)
    control.write('{"describe":"x"}\n')
    open().write(bytes)
    await closed
    assert.ok(await isForwarding())
  })

test('a stream for a client, host or revision that is not right gets a response of the edge', async (t) => {
  const { control, lines, open } = await openSession(t)
  control.write(`{"describe":"${client.host}"}\n{"describe":"x"}\n`)
  await until('both are described', () => lines.length === 2)
  assert.deepEqual(JSON.parse(lines[1] as string), { gone: 'x' })
  const { tunnel } = JSON.parse(lines[0] as string)
  const head = { host: client.host, client: tunnel.clients[0].id, revision: tunnel.revision }
  const wrong = [{ client: 'x' }, { host: 'x' }, { revision: head.revision + 1 }, { revision: 0 }]
  for (const change of wrong) {
    const text = JSON.stringify({ ...head, ...change })
    const stream = open()
    stream.write(Buffer.from([text.length >> 8, text.length & 255]))
    stream.write(`${text}GET / HTTP/1.1\r\n\r\n`)
    const [response] = await once(stream, 'data')
    assert.match(String(response), /^HTTP\/1.1 502 Bad Gateway\r\nadit-problem: tunnel_moved\r\n/)
  }
})

/** A false serving edge, which sends these lines when it is asked, and calls back when it gets a request. */
async function startFalseEdge(
  t: Test,
  line: (host: string) => string,
  onForwarded = () => {},
): Promise<string> {
  const id = `edge_${randomBytes(4).toString('hex')}`
  const server = createServer({ ...TLS_OPTIONS, pskCallback: () => pairSecret(id, 'edge_entry') })
  server.on('secureConnection', (socket) => {
    let hasControl = false
    new Session(toConnection(socket), {
      role: 'server',
      onStream(stream) {
        stream.on('error', () => {})
        if (hasControl) return onForwarded()
        hasControl = true
        stream.once('data', (chunk) => stream.write(line(JSON.parse(String(chunk)).describe)))
      },
      onClose: () => {},
    })
  })
  const host = `${id.replace('_', '-')}.acme.tunnels.test`
  cluster.addresses.set(id, `127.0.0.1:${await listen(t, server)}`)
  cluster.locate(host, id)
  return host
}

const describeFalsely = (host: string, change: object) => {
  const rules = { basicAuth: null, allowIp: [] }
  const tunnel = { host, name: 'x', url: 'http://x', type: 'http', workspace: 'acme', revision: 1 }
  const clients = [{ id: 'tun_x', keyHash: 'x' }]
  return `${JSON.stringify({ tunnel: { ...tunnel, clientRules: rules, nameRules: rules, clients, ...change } })}\n`
}

const DESCRIPTIONS: Record<string, object> = {
  'rules that are missing': { nameRules: undefined },
  'a network that is none': { nameRules: { basicAuth: null, allowIp: ['anywhere'] } },
  'a password without a hash': { nameRules: { basicAuth: { user: 'x' }, allowIp: [] } },
  'a client without the hash of its key': { clients: [{ id: 'x' }] },
  'too many clients': { clients: Array.from({ length: 51 }, () => ({ id: 'x', keyHash: 'x' })) },
  'a header in the host': {
    clients: [{ id: 'x', keyHash: 'x', target: 'http://x', hostHeader: 'a\r\nb: c' }],
  },
}

for (const [what, change] of Object.entries(DESCRIPTIONS))
  test(`a description with ${what} opens nothing`, async (t) => {
    const host = await startFalseEdge(t, (asked) => describeFalsely(asked, change))
    assert.equal((await fetchHost(entry, host)).status, 503)
    assert.ok(await isForwarding())
  })

test('an edge that describes the tunnel of another edge gets none of its requests', async (t) => {
  let forwarded = 0
  const host = await startFalseEdge(
    t,
    (asked) => describeFalsely(client.host, {}) + describeFalsely(asked, { clients: [] }),
    () => {
      forwarded += 1
    },
  )
  assert.ok(await isForwarding(), 'the entry edge knows the tunnel')
  assert.equal((await fetchHost(entry, host)).status, 404)
  const responses = await Promise.all(Array.from({ length: 20 }, isForwarding))
  assert.ok(responses.every(Boolean))
  assert.equal(forwarded, 0)
})
