// Commands and the edge behind a forward proxy: every connection to a server or an edge goes through it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer as createTcpServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import {
  fetchHost,
  newKey,
  openSocket,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { listen } from '../support/network/listen.ts'
import { startProcess } from '../support/processes/process.ts'
import { atTerminal, hasTerminal, NO_TERMINAL } from '../support/processes/terminal.ts'
import { makeCertificate } from '../support/proxies/certificates.ts'
import { PROXY_ADDRESS, startTinyproxy, tinyproxy } from '../support/proxies/tinyproxy.ts'
import { until } from '../support/until.ts'

const NO_TINYPROXY = 'tinyproxy is not installed'
const PASSWORD = 's3cret.word'

type Certificate = NonNullable<ReturnType<typeof makeCertificate>>

/** Passes connections on to the target, and records where they come from. */
async function startFront(t: Test, target: string, certificate?: Certificate) {
  const peers: (string | undefined)[] = []
  const { hostname, port } = new URL(target)
  const onConnection = (client: Socket) => {
    peers.push(client.remoteAddress)
    const server = connect(Number(port), hostname)
    for (const [from, to] of [[client, server] as const, [server, client] as const])
      from
        .on('error', () => to.destroy())
        .once('close', () => to.destroy())
        .pipe(to)
    atEnd(t, () => client.destroy())
  }
  const server = certificate
    ? createTlsServer(
        { key: readFileSync(certificate.key), cert: readFileSync(certificate.certificate) },
        onConnection,
      )
    : createTcpServer(onConnection)
  const authority = `127.0.0.1:${await listen(t, server)}`
  return { url: `${certificate ? 'https' : 'http'}://${authority}`, authority, peers }
}

const plane = await startPlane({ after }, ['acme'])
const key = await newKey(plane, 'acme')

async function runBehindProxy(t: TestContext, scheme: 'http' | 'https') {
  const certificate = scheme === 'https' ? makeCertificate(t, 'IP:127.0.0.1') : undefined
  const [user, credential] = certificate
    ? [`ann:${PASSWORD.replace('.', '%2E')}@`, `BasicAuth ann ${PASSWORD}`]
    : []
  const proxy = await startTinyproxy(t, ...(credential ? [credential] : []))
  const planeFront = await startFront(t, plane.url, certificate)
  const env = {
    [scheme === 'https' ? 'HTTPS_PROXY' : 'http_proxy']: `http://${user ?? ''}127.0.0.1:${proxy.port}`,
    XDG_CONFIG_HOME: createFolder(t),
    ...(certificate && { NODE_EXTRA_CA_CERTS: certificate.certificate }),
  }
  const adit = (args: string[], input = '') => startProcess(t, args, env, input).ended

  const login = await adit(['login', planeFront.url], `${key}\n`)
  assert.equal(login.code, 0, login.stderr)
  const listed = await adit(['keys', 'list', '--json'])
  assert.equal(JSON.parse(listed.stdout).length, 1, listed.stderr)

  const edge = await startTunnelEdge(t, { plane, env: { ...env, ADIT_URL: planeFront.url } })
  const edgeFront = await startFront(t, edge.url, certificate)
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge: edgeFront, key, port: local.port, name: scheme, env })
  assert.equal((await fetchHost(edge, tunnel.host, { path: '/bytes/300000' })).body.length, 300_000)
  const socket = await openSocket(edge, tunnel.host)
  socket.send('hello')
  assert.equal(String((await once(socket, 'message'))[0]), 'hello')
  socket.terminate()

  const project = createFolder(t)
  const tunnels = { [`${scheme}-start`]: { target: local.port } }
  writeFileSync(join(project, 'adit.json'), JSON.stringify({ tunnels }))
  const startArgs = ['start', '--edge', edgeFront.url, '--json', '--yes']
  const started = startProcess(t, startArgs, { ...env, ADIT_API_KEY: key }, '', project)
  await started.waitFor(/"event":"open"/)

  for (const { peers } of [planeFront, edgeFront])
    assert.deepEqual(new Set(peers), new Set([PROXY_ADDRESS]), 'all connections are those of the proxy')
  for (const { socket } of local.requests) assert.notEqual(socket.remoteAddress, PROXY_ADDRESS)
  const requests = proxy.requests()
  assert.ok(requests.includes(`CONNECT ${edgeFront.authority}`), 'the WebSocket of the tunnel')
  const toPlane = scheme === 'https' ? [`CONNECT ${planeFront.authority}`] : plainRequests(planeFront.url)
  for (const request of toPlane)
    assert.ok(requests.includes(request), `${request} in\n${requests.join('\n')}`)

  await proxy.stop()
  const before = planeFront.peers.length
  const failed = await adit(['keys', 'list'])
  assert.equal(failed.code, 1)
  const variable = scheme === 'https' ? 'HTTPS_PROXY' : 'http_proxy'
  assert.match(
    failed.stderr,
    new RegExp(`the proxy 127\\.0\\.0\\.1:${proxy.port} \\(${variable}\\) cannot be reached: .*ECONNREFUSED`),
  )
  assert.equal(planeFront.peers.length, before, 'nothing is reached without the proxy')
  const excluded = await startProcess(t, ['keys', 'list', '--json'], { ...env, NO_PROXY: '127.0.0.0/8' })
    .ended
  assert.equal(excluded.code, 0, excluded.stderr)
  edge.child.kill('SIGTERM')
  tunnel.child.kill('SIGTERM')
  const outputs = [login, listed, failed, await edge.ended, await tunnel.ended, await started.stop()]
  for (const { stdout, stderr } of outputs) assert.ok(!`${stdout}${stderr}`.includes('s3cret'))
}

/** What login, the list of keys and the edge send: API calls and the stream of changes. */
const plainRequests = (url: string) => [
  `GET ${url}/api/v1/workspace`,
  `GET ${url}/api/v1/tokens?limit=500`,
  `POST ${url}/edge/v1/keys/verify`,
  `POST ${url}/edge/v1/tunnels/claim`,
  `GET ${url}/edge/v1/key-changes`,
]

test('http: login, keys, edge and tunnel go through the proxy, and the local server does not', async (t) => {
  if (!tinyproxy) return t.skip(NO_TINYPROXY)
  await runBehindProxy(t, 'http')
})

const WANTS_PASSWORD =
  /the proxy 127\.0\.0\.1:\d+ \(http_proxy\) rejected the connection with 40[17]: set a valid user and password/

test('login and tunnel end if the proxy wants a password, and say how to set it', async (t) => {
  if (!tinyproxy) return t.skip(NO_TINYPROXY)
  if (!hasTerminal) return t.skip(NO_TERMINAL)
  const guarded = await startTinyproxy(t, `BasicAuth ann ${PASSWORD}`)
  const home = createFolder(t)
  const env = { http_proxy: `http://127.0.0.1:${guarded.port}`, HOME: home, XDG_CONFIG_HOME: home }
  const rejected = atTerminal(t, ['login', plane.url], env)
  assert.equal(await rejected.ended, 1)
  assert.match(rejected.output(), WANTS_PASSWORD)
  assert.doesNotMatch(rejected.output(), /Server \[|API key/, 'nothing is asked')
  const args = ['tunnel', '3000', '--edge', plane.url, '--json']
  const tunnel = await startProcess(t, args, { ...env, ADIT_API_KEY: key }).ended
  assert.equal(tunnel.code, 1)
  const { error, message } = JSON.parse(tunnel.stderr)
  assert.equal(error, 'proxy_rejected')
  assert.match(message, WANTS_PASSWORD)

  const proxy = await startTinyproxy(t)
  const device = atTerminal(t, ['login', plane.url], { ...env, http_proxy: `http://127.0.0.1:${proxy.port}` })
  await device.reply('Press Enter to sign in with your browser', '\r')
  await until('the code', () => device.output().includes('Press Ctrl-C to cancel.'))
  proxy.reload(`BasicAuth ann ${PASSWORD}`)
  assert.equal(await device.ended, 1)
  assert.match(device.output(), WANTS_PASSWORD)
})

test('https: the same with TLS and a proxy that needs a password, which no output has', async (t) => {
  if (!tinyproxy) return t.skip(NO_TINYPROXY)
  await runBehindProxy(t, 'https')
})
