// `adit tunnel` to servers of all kinds: TLS, Unix sockets, and servers that do not work, with what it says
// about them.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttp, type RequestListener } from 'node:http'
import { createServer as createHttp2 } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createServer as createVite } from 'vite'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openSocket } from '../../support/edges/tunnels.ts'
import { collectText } from '../../support/network/collect.ts'
import { pluck } from '../../support/pluck.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { freePort } from '../../support/processes/ports.ts'
import { run, startProcess } from '../../support/processes/process.ts'
import { makeCertificate } from '../../support/proxies/certificates.ts'
import { until } from '../../support/until.ts'

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const [key = ''] = keys
const certificate = makeCertificate({ after }, 'DNS:localhost')
const tls = certificate && {
  key: readFileSync(certificate.key),
  cert: readFileSync(certificate.certificate),
}

interface TunnelEvent {
  event: string
  code?: string
  host?: string
  message?: string
  [field: string]: unknown
}

/** `adit tunnel --json`, once it is open. */
const open = (t: Test, ...args: string[]) => openIn(t, process.cwd(), 'tunnel', ...args)

/** A command that opens one tunnel, in this folder. */
async function openIn(t: Test, folder: string, ...args: string[]) {
  const env = { ADIT_API_KEY: key, HOME: folder }
  const tunnel = startProcess(t, [...args, '--edge', edge.url, '--json'], env, '', folder)
  const output = collectText(tunnel.child.stdout)
  const events = (name: string) =>
    (output().match(/^\{.*\}$/gm) ?? [])
      .map((line) => JSON.parse(line) as TunnelEvent)
      .filter(({ event }) => event === name)
  await until('the tunnel is open', () => events('open').length > 0)
  const host = events('open')[0]?.host ?? ''
  const problems = () => events('problem').map(({ code }) => code)
  return {
    ...tunnel,
    ...{ host, events, problems },
    get: async (path = '/') => {
      const { status, body } = await fetchHost(edge, host, { path })
      // The first line of an error of the edge is its cause.
      const text = String(body).trim()
      return [status, status === 502 ? text.replace(/\n.*/s, '') : text] as const
    },
    untilProblem: async (code: string) => {
      await until(`the problem ${code}`, () => problems().includes(code))
      return events('problem').find((problem) => problem.code === code)?.message ?? ''
    },
  }
}

async function listen(t: Test, server: Server, ...address: [port: number] | [path: string]): Promise<number> {
  if (typeof address[0] === 'string') server.listen(address[0])
  else server.listen(address[0], 'localhost')
  await once(server, 'listening')
  atEnd(t, () => {
    server.close()
    if ('closeAllConnections' in server) (server as ReturnType<typeof createHttp>).closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

const hello: RequestListener = (request, response) =>
  void request.resume().once('end', () => response.end(`hello ${request.method} ${request.headers.host}`))

test('an https:// target is verified by the system, by --ca, or not at all with --insecure', async (t) => {
  if (!certificate || !tls) return t.skip('openssl is not installed')
  const port = await listen(t, createHttps(tls, hello), 0)
  const target = `HTTPS://localhost:${port}`
  const [strict, withCa, insecure] = await Promise.all([
    open(t, target),
    open(t, target, '--ca', certificate.certificate, '--host-header', 'rewrite'),
    open(t, `https://127.0.0.1:${port}`, '--insecure'),
  ])
  assert.deepEqual(await strict.get(), [502, 'The certificate of the local server is not trusted.'])
  assert.match(
    await strict.untilProblem('certificate'),
    /self-signed certificate\. .*--ca <file>, or use --insecure/,
  )
  assert.deepEqual(await withCa.get(), [200, `hello GET localhost:${port}`])
  assert.deepEqual(await insecure.get(), [200, `hello GET ${insecure.host}`])
  const body = Buffer.alloc(3_000_000, 'x')
  assert.equal((await fetchHost(edge, withCa.host, { method: 'POST', body })).status, 200)
  assert.deepEqual([withCa.problems(), insecure.problems()], [[], []])
})

test('an https:// target that does not speak TLS is reported', async (t) => {
  const port = await listen(t, createHttp(hello), 0)
  const tunnel = await open(t, `https://localhost:${port}`)
  assert.match(await tunnel.untilProblem('no_tls'), new RegExp(`Use http://localhost:${port}\\.`))
  assert.deepEqual(await tunnel.get(), [502, 'The local server does not use TLS.'])
})

test('a target may be a Unix socket', async (t) => {
  const path = join(createFolder(t), 'app.sock')
  const server = createHttp(hello)
  await listen(t, server, path)
  const tunnel = await open(t, `unix:${path}`, '--host-header', 'rewrite')
  assert.equal(tunnel.events('open')[0]?.target, `unix:${path}`)
  assert.deepEqual(await tunnel.get(), [200, 'hello GET localhost'])
  server.close()
  server.closeAllConnections()
  assert.equal((await tunnel.get())[0], 502)
  await tunnel.untilProblem('unreachable')
})

test('the tunnels of adit.json have the same targets, with paths from its folder', async (t) => {
  if (!certificate || !tls) return t.skip('openssl is not installed')
  const folder = createFolder(t)
  mkdirSync(join(folder, '.git'))
  mkdirSync(join(folder, 'inner'))
  copyFileSync(certificate.certificate, join(folder, 'ca.pem'))
  const target = `https://localhost:${await listen(t, createHttps(tls, hello), 0)}`
  await listen(t, createHttp(hello), join(folder, 'app.sock'))
  const tunnels = {
    'with-ca': { target, ca: 'ca.pem' },
    insecure: { target, insecure: true },
    strict: { target },
    socket: { target: 'unix:app.sock' },
  }
  writeFileSync(join(folder, 'adit.json'), JSON.stringify({ tunnels }))
  const inner = join(folder, 'inner')
  const names = Object.keys(tunnels)
  const started = await openIn(t, inner, 'start', ...names, '--yes')
  await until('all are open', () => started.events('open').length === names.length)
  const host = (name: string) => started.host.replace(/^[^.]+/, name)
  const responses = names.map((name) => fetchHost(edge, host(name)))
  assert.deepEqual(pluck(await Promise.all(responses), 'status'), [200, 200, 502, 200])
  assert.match(
    await started.untilProblem('certificate'),
    /with "ca": "<file>" in adit\.json, or use "insecure": true in adit\.json to accept any/,
  )
  assert.deepEqual(pluck(started.events('problem'), 'name'), ['strict'])
  assert.equal((await started.stop()).stderr, '', 'problems are events only')
  const flagFirst = await openIn(t, inner, 'tunnel', '--name', 'strict', '--insecure')
  assert.equal((await flagFirst.get())[0], 200)
})

test('targets and flags that contradict each other are rejected', async (t) => {
  for (const [args, message] of [
    [['https:8443'], /Invalid target "https:8443" .*https:\/\//],
    [['HTTP:3000'], /Invalid target/],
    [['ftp://localhost:21'], /Invalid target .*http:\/\/ or https:\/\//],
    [['tcp', 'https://localhost:8443'], /Invalid target .*tcp:\/\//],
    [['unix:'], /Invalid path of a Unix socket/],
    [['3000', '--insecure'], /--insecure and --ca are for targets with https:\/\//],
    [['https://localhost:1', '--insecure', '--ca', 'x'], /Use one of them/],
    [['https://localhost:1', '--ca', '/nowhere.pem'], /Cannot use --ca .*ENOENT/],
    [['https://localhost:1', '--ca', 'package.json'], /Cannot use --ca .*certificate in PEM/],
    [['--serve', '.', '--insecure'], /--insecure has no effect on --serve/],
  ] as const) {
    assertFailed(await run(t, ['tunnel', ...args, '--edge', edge.url], { ADIT_API_KEY: key }), 2, message)
  }
})

test('nothing listens: it is said at the start, once, and when the server is back', async (t) => {
  const port = await freePort()
  const tunnel = await open(t, String(port))
  assert.match(
    await tunnel.untilProblem('unreachable'),
    new RegExp(`The local server at http://localhost:${port} cannot be reached: .*ECONNREFUSED.*Start it`),
  )
  for (let count = 0; count < 3; count++)
    assert.deepEqual(await tunnel.get(), [502, 'The local server cannot be reached.'])
  await assert.rejects(openSocket(edge, tunnel.host), /502/)
  await tunnel.waitFor(/"event":"request"/)
  assert.deepEqual(tunnel.problems(), ['unreachable'])
  const server = createHttp(hello)
  await listen(t, server, port)
  await tunnel.waitFor(/"event":"resolved"/)
  assert.equal((await tunnel.get())[0], 200)
  server.close()
  server.closeAllConnections()
  await tunnel.get()
  await until('it is said again', () => tunnel.problems().length === 2)
})

test('the check at the start resets no connection, and recognizes a server that sends the first bytes', async (t) => {
  if (!tls) return t.skip('openssl is not installed')
  const ends: string[] = []
  const watch = (name: string) => (socket: Socket) =>
    socket
      .on('error', (error) => ends.push(`${name}: ${error.message}`))
      .once('end', () => ends.push(`${name}: end`))
  const ssh = createTcp((socket) => void watch('ssh')(socket).resume().write('SSH-2.0-test\r\n'))
  const [http, https] = [createHttp(hello), createHttps(tls, hello)]
  http.on('connection', watch('http'))
  https.on('secureConnection', watch('https'))
  const ports = [await listen(t, http, 0), await listen(t, https, 0), await listen(t, ssh, 0)]
  const [plain, secure, other] = await Promise.all([
    open(t, String(ports[0])),
    open(t, `https://localhost:${ports[1]}`, '--insecure'),
    open(t, String(ports[2])),
  ])
  await until('all checks ended', () => ends.length >= 3)
  assert.deepEqual(ends.sort(), ['http: end', 'https: end', 'ssh: end'])
  assert.match(await other.untilProblem('not_http'), /does not speak HTTP\. .* use `adit tunnel tcp`\.$/)
  assert.deepEqual([plain.problems(), secure.problems()], [[], []])
})

test('a server that speaks TLS is recognized, whether it sends an alert or not', async (t) => {
  if (!tls) return t.skip('openssl is not installed')
  const port = await listen(t, createHttps(tls, hello), 0)
  const alert = await listen(
    t,
    createTcp((socket) => void socket.on('error', () => {}).end('\x15\x03\x01\x00\x02\x02\x46', 'latin1')),
    0,
  )
  const [silent, alerting] = await Promise.all([open(t, String(port)), open(t, String(alert))])
  assert.equal((await silent.get())[0], 502)
  assert.match(
    await silent.untilProblem('tls'),
    new RegExp(`speaks TLS\\. Use https://localhost:${port}, with --insecure`),
  )
  assert.deepEqual(await alerting.get(), [502, 'The local server uses TLS.'])
  await alerting.untilProblem('tls')
})

test('a server that speaks only HTTP/2 is recognized, at the start', async (t) => {
  const tunnel = await open(t, String(await listen(t, createHttp2(), 0)))
  assert.match(await tunnel.untilProblem('http2'), /speaks only HTTP\/2\. Have it accept HTTP\/1\.1/)
  assert.deepEqual(await tunnel.get(), [502, 'The local server speaks only HTTP/2.'])
  assert.deepEqual(tunnel.problems(), ['http2'], 'at the start, and once')
})

test('a server whose lines end without CR is reported without waiting for the rest', async (t) => {
  const server = createTcp((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\nContent-Length: 2\n\nok'))
  })
  const tunnel = await open(t, String(await listen(t, server, 0)))
  assert.deepEqual(await tunnel.get(), [502, 'The response of the local server is invalid.'])
  assert.match(await tunnel.untilProblem('invalid_response'), /each line must end with CRLF/)
})

test('servers that send no valid response are reported by kind, once until the path works', async (t) => {
  const responses = {
    not_http: 'SSH-2.0-test\r\n',
    head_too_large: `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(66_000)}\r\n\r\n`,
    invalid_response: 'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n',
    closed: 'HTTP/1.1 200',
    ok: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok',
  }
  let kind: keyof typeof responses = 'not_http'
  const server = createTcp((socket) => {
    socket.on('error', () => {})
    // A server of another protocol stays connected.
    socket.once('data', () =>
      kind === 'not_http' ? socket.write(responses[kind]) : socket.end(responses[kind]),
    )
  })
  const tunnel = await open(t, String(await listen(t, server, 0)))
  for (const code of ['not_http', 'head_too_large', 'invalid_response', 'closed'] as const) {
    kind = code
    const bodies = [await tunnel.get(`/${code}`), await tunnel.get(`/${code}`)]
    assert.match(bodies[0]?.[1] ?? '', /^The /)
    assert.doesNotMatch(bodies[0]?.[1] ?? '', /localhost|127\.0\.0\.1|\d{4}/)
    await tunnel.untilProblem(code)
  }
  await until('all requests', () => tunnel.events('request').length === 8)
  assert.deepEqual(tunnel.problems(), ['not_http', 'head_too_large', 'invalid_response', 'closed'])
  kind = 'ok'
  assert.equal((await tunnel.get('/other'))[0], 200)
  kind = 'closed'
  await tunnel.get('/closed')
  kind = 'ok'
  await tunnel.get('/closed')
  kind = 'closed'
  await tunnel.get('/closed')
  await until('it is said again', () => tunnel.problems().length === 5)
  assert.equal(tunnel.problems()[4], 'closed')
})

test('Vite rejects the host of a tunnel, which is said with the flag, and accepts it with the flag', async (t) => {
  const root = createFolder(t)
  const vite = await createVite({
    root,
    configFile: false,
    logLevel: 'silent',
    server: { port: await freePort() },
  })
  atEnd(t, () => vite.close())
  await vite.listen()
  const port = String(vite.config.server.port)
  const [plain, rewritten] = await Promise.all([open(t, port), open(t, port, '--host-header', 'rewrite')])
  assert.match((await plain.get('/@vite/client'))[1], /^Blocked request/)
  assert.match(
    await plain.untilProblem('host_rejected'),
    /^Vite at http:\/\/localhost:\d+ rejects .* --host-header rewrite/,
  )
  assert.equal((await rewritten.get('/@vite/client'))[0], 200)
  await rewritten.waitFor(/"event":"request"/)
  assert.deepEqual(rewritten.problems(), [])
})

/** As these servers send them; the body of Rails is behind its style sheet. */
const REJECTIONS: [framework: string, status: number, path: string, body: string][] = [
  [
    'Django',
    400,
    '/',
    '<!DOCTYPE html>\n<html lang="en">\n<head>\n  <meta http-equiv="content-type" content="text/html; charset=utf-8">\n  <meta name="robots" content="NONE,NOARCHIVE">\n  <title>DisallowedHost\n          at /</title>',
  ],
  ['Rails', 403, '/', `<!DOCTYPE html><style>${' '.repeat(5_000)}</style><h1>Blocked hosts: app.test</h1>`],
  ['Next', 403, '/_next/webpack-hmr', 'Unauthorized'],
  ['webpack-dev-server', 200, '/', 'Invalid Host header'],
  ['Storybook', 403, '/', 'Invalid host'],
]

test('rejections of other frameworks are recognized, and ordinary responses are not', async (t) => {
  let rejection: (typeof REJECTIONS)[number] = ['', 403, '/', 'Forbidden']
  const server = createHttp((_, response) => {
    const [, status, , body] = rejection
    response.writeHead(status, { 'content-length': Buffer.byteLength(body) }).end(body)
  })
  // Next sends no status line to an upgrade.
  server.on('upgrade', (_, socket) => socket.on('error', () => {}).end('Unauthorized'))
  const port = String(await listen(t, server, 0))
  const ordinary = await open(t, port)
  for (const [status, path, body] of [
    [403, '/', 'Unauthorized'],
    [400, '/', 'DisallowedHost'],
    [404, '/', 'Invalid Host header'],
    [200, '/', 'Invalid host header'],
  ] as const) {
    rejection = ['', status, path, body]
    assert.equal((await ordinary.get(path))[1], body)
  }
  await until('all requests', () => ordinary.events('request').length === 4)
  assert.deepEqual(ordinary.problems().slice(0, -1), [])
  for (const [framework, status, path, body] of REJECTIONS) {
    rejection = [framework, status, path, body]
    const tunnel = await open(t, port)
    assert.deepEqual(await tunnel.get(path), [status, body], 'the response is not changed')
    assert.ok((await tunnel.untilProblem('host_rejected')).startsWith(`${framework} at `))
    tunnel.child.kill('SIGKILL')
  }
  const { untilProblem, host } = await open(t, port)
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket' }
  assert.equal((await fetchHost(edge, host, { path: '/_next/webpack-hmr', headers: upgrade })).status, 502)
  assert.match(await untilProblem('host_rejected'), /^Next at /)
})

test('a request event has the bytes of both directions and the time until the last byte', async (t) => {
  const server = createHttp((request, response) => {
    request.resume().once('end', () => {
      response.write('x'.repeat(10_000))
      setTimeout(() => response.end('y'), 300)
    })
  })
  const tunnel = await open(t, String(await listen(t, server, 0)))
  const { status } = await fetchHost(edge, tunnel.host, {
    ...{ method: 'POST', path: '/a?b', body: Buffer.alloc(50_000) },
  })
  assert.equal(status, 200)
  await until('the event', () => tunnel.events('request').length === 1)
  const { path, bytesIn, bytesOut, ms } = tunnel.events('request')[0] as Record<string, number | string>
  assert.equal(path, '/a?b')
  assert.ok(Number(bytesIn) > 50_000 && Number(bytesIn) < 51_000, `${bytesIn}`)
  assert.ok(Number(bytesOut) > 10_001 && Number(bytesOut) < 11_000, `${bytesOut}`)
  assert.ok(Number(ms) >= 290, `${ms}`)
})
