// Caddy in front of a control plane and an edge, with deploy/Caddyfile and certificates of a real ACME
// server.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { type RequestOptions, request } from 'node:https'
import type { LookupFunction } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { type TLSSocket, connect as tlsConnect } from 'node:tls'
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws'
import { atEnd, type Test } from '../../support/cleanup.ts'
import {
  type Edge,
  newKey,
  type Plane,
  startPlane,
  startTunnel,
  startTunnelEdge,
} from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { freePorts } from '../../support/processes/ports.ts'
import { root, startProcess } from '../../support/processes/process.ts'
import { type Acme, caddyMissing, startAcme, startCaddy } from '../../support/proxies/caddy.ts'
import { until } from '../../support/until.ts'

const CONTROL_PLANE = 'adit.example.com'
const TUNNELS = 'tunnels.example.com'
const HOST = `app.acme.${TUNNELS}`
const skip = caddyMissing

let acme: Acme
let caddy: Awaited<ReturnType<typeof startCaddy>>
let plane: Plane
let edge: Edge
let key: string
let trust: Record<string, string>

if (!skip) {
  const t: Test = { after }
  acme = await startAcme(t)
  plane = await startPlane(t, ['acme'], {
    ADIT_TUNNEL_DOMAIN: TUNNELS,
    ADIT_BASE_URL: `https://${CONTROL_PLANE}:${acme.httpsPort}`,
    ADIT_TRUSTED_PROXIES: '127.0.0.1',
    ADIT_TCP_PORTS: (await freePorts(10)).range,
  })
  const node = `127.0.0.1:${plane.env.ADIT_PORT}`
  key = await newKey(plane, 'acme')
  edge = await startTunnelEdge(t, {
    plane: { ...plane, url: `http://${node}` },
    env: { ADIT_EDGE_PUBLIC: `https:${acme.httpsPort}` },
  })
  caddy = await startCaddy(t, acme, {
    DOMAIN: CONTROL_PLANE,
    NODES: node,
    EDGE: `127.0.0.1:${edge.port}`,
  })
  const resolveNames = `--import=${join(root, 'test/support/network/loopback-dns.js')}`
  trust = { NODE_EXTRA_CA_CERTS: acme.rootFile, NODE_OPTIONS: resolveNames }
}

/** The tunnel client connects through Caddy too, by its tunnel domain. */
async function openTunnel(t: Test, name: string, handle: (r: IncomingMessage, s: ServerResponse) => void) {
  const server = createServer(handle)
  const port = await listen(t, server)
  const url = `https://acme.${TUNNELS}:${acme.httpsPort}`
  const tunnel = startTunnel(t, { edge: { url }, key, port, name, env: trust })
  await tunnel.waitFor(/"event":"open"/)
  return { server, tunnel }
}

const loopback: LookupFunction = (_name, { all }, callback) =>
  all ? callback(null, [{ address: '127.0.0.1', family: 4 }]) : callback(null, '127.0.0.1', 4)

/** Verifies the certificate for the host. */
const optionsFor = (host: string) => ({
  host,
  port: acme.httpsPort,
  ca: acme.root,
  servername: host,
  lookup: loopback,
  agent: false as const,
})

async function fetchHttps(host: string, options: RequestOptions = {}) {
  const sent = request({ ...optionsFor(host), ...options })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

/** The certificate for a host, or the error of the handshake. */
async function handshake(host: string): Promise<string> {
  const socket: TLSSocket = tlsConnect({ ...optionsFor(host), ALPNProtocols: ['http/1.1'] })
  try {
    await once(socket, 'secureConnect')
    return String(socket.getPeerCertificate().subjectaltname)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'error'
  } finally {
    socket.destroy()
  }
}

test('behind Caddy, an open tunnel has a certificate by itself, and no other name gets one', {
  skip,
}, async (t) => {
  await openTunnel(t, 'app', (_request, response) => response.end('hello'))
  const tcp = ['tunnel', 'tcp', '9', '--name', 'db', '--edge', edge.url]
  await startProcess(t, tcp, { ADIT_API_KEY: key }).waitFor(/tcp:/)
  assert.equal(await handshake(HOST), `DNS:${HOST}`)
  assert.equal((await fetchHttps(HOST)).body, 'hello')
  const others = ['other.acme', 'beta', 'app.beta', 'db.acme', 'x.app.acme'].map(
    (name) => `${name}.${TUNNELS}`,
  )
  for (const host of [...others, 'www.example.org', 'localhost'])
    assert.match(await handshake(host), /TLSV1_ALERT_INTERNAL_ERROR/, host)
  assert.equal((await fetchHttps(CONTROL_PLANE, { path: '/readyz' })).status, 200)
  assert.deepEqual(caddy.certificates(), [CONTROL_PLANE, `acme.${TUNNELS}`, HOST].toSorted())
})

test('behind Caddy, the local server sees host, scheme and client, and no forged ones', {
  skip,
}, async (t) => {
  await openTunnel(t, 'app', ({ headers }, response) => response.end(JSON.stringify(headers)))
  const forged = {
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-proto': 'http',
    'x-forwarded-host': 'evil.example',
  }
  const { body } = await fetchHttps(HOST, { headers: forged })
  const seen = JSON.parse(body)
  const host = `${HOST}:${acme.httpsPort}`
  assert.equal(seen.host, host)
  // The client, and Caddy: both are this machine.
  assert.equal(seen['x-forwarded-for'], '127.0.0.1, 127.0.0.1')
  assert.equal(seen['x-forwarded-proto'], 'https')
  assert.equal(seen['x-forwarded-host'], host)
  assert.equal(seen['accept-encoding'], undefined)
})

test('behind Caddy, requests by HTTP/2 reach the tunnel, and by HTTP are redirected', { skip }, async (t) => {
  await openTunnel(t, 'app', (request, response) => {
    text(request).then((body) => response.end(`${request.method} ${body.length}`))
  })
  const session = connectHttp2(`https://${HOST}:${acme.httpsPort}`, { ca: acme.root, lookup: loopback })
  atEnd(t, () => session.destroy())
  const stream = session.request({ ':method': 'POST', ':path': '/' })
  stream.end('b'.repeat(1_000_000))
  assert.equal(await text(stream), 'POST 1000000')
  const sent = httpRequest({ port: acme.httpPort, headers: { host: HOST }, path: '/x', agent: false }).end()
  const [{ statusCode, headers }] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(statusCode, 308)
  assert.equal(headers.location, `https://${HOST}/x`)
})

test('behind Caddy, WebSockets carry messages in both directions', { skip }, async (t) => {
  const { server } = await openTunnel(t, 'app', (_request, response) => response.end())
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) =>
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
  )
  const { ca, servername, lookup } = optionsFor(HOST)
  const socket = new WebSocket(`wss://${HOST}:${acme.httpsPort}/`, {
    ca,
    servername,
    lookup,
  } as ClientOptions)
  await once(socket, 'open')
  socket.send(Buffer.alloc(1_000_000, 'w'))
  const [back] = await once(socket, 'message')
  assert.equal(back.length, 1_000_000)
  socket.terminate()
})

for (const type of ['text/event-stream', 'text/plain'])
  test(`behind Caddy, a stream of ${type} arrives as it is sent, and ends when the client leaves`, {
    skip,
  }, async (t) => {
    const responses: ServerResponse[] = []
    await openTunnel(t, 'app', (_request, response) => {
      responses.push(response.writeHead(200, { 'content-type': type }))
      response.write('data: 1\n\n')
    })
    const sent = request(optionsFor(HOST)).end()
    const [incoming] = (await once(sent, 'response')) as [IncomingMessage]
    const [first] = await once(incoming, 'data')
    assert.equal(String(first), 'data: 1\n\n')
    const [local] = responses as [ServerResponse]
    local.write('data: 2\n\n')
    const [second] = await once(incoming, 'data')
    assert.equal(String(second), 'data: 2\n\n')
    const closed = once(local, 'close')
    incoming.destroy()
    await closed
  })

test('behind Caddy, clients cannot ask which hosts exist', { skip }, async (t) => {
  await openTunnel(t, 'app', (_request, response) => response.end())
  const path = `/.adit/tls-ask?domain=${HOST}`
  assert.equal((await fetch(`http://127.0.0.1:${edge.port}${path}`)).status, 200)
  assert.equal((await fetchHttps(HOST, { path })).status, 404)
  assert.equal((await fetchHttps(HOST, { path, headers: { connection: 'x-forwarded-for' } })).status, 404)
})

test('behind Caddy, the CLI works over HTTPS, and requests get 503 while no node is ready', {
  skip,
}, async (t) => {
  const env = { ADIT_URL: `https://${CONTROL_PLANE}:${acme.httpsPort}`, ADIT_API_KEY: key, ...trust }
  const { code, stdout } = await startProcess(t, ['workspace', '--json'], env).ended
  assert.equal(code, 0)
  assert.equal(JSON.parse(stdout).tunnelBase, `acme.${TUNNELS}`)
  plane.child.kill('SIGKILL')
  await plane.ended
  let response: Awaited<ReturnType<typeof fetchHttps>> | undefined
  await until('Caddy notices', async () => {
    response = await fetchHttps(CONTROL_PLANE, { path: '/api/v1/workspace' })
    return response.status === 503
  })
  assert.equal(JSON.parse(response?.body ?? '').error, 'unavailable')
  assert.equal(response?.headers['retry-after'], '1')
  assert.equal(response?.headers['access-control-allow-origin'], '*')
})
