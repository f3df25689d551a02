// `adit tunnel`: what it prints, how it stops, and its exit codes, at an edge that the test controls.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { type EdgeSide, OPENED, openStream, startMinimalEdge } from '../../support/edges/minimal-edge.ts'
import { listen } from '../../support/network/listen.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { run, startProcess } from '../../support/processes/process.ts'
import { makeCertificate } from '../../support/proxies/certificates.ts'
import { until } from '../../support/until.ts'

const TCP = { type: 'tcp', url: 'tcp://tunnels.test:20000', host: 'tunnels.test:20000', name: 'db' } as const

async function startEcho(t: Test): Promise<number> {
  return listen(
    t,
    createServer((socket) => socket.on('error', () => undefined).pipe(socket)),
  )
}

async function startTunnel(t: Test, args: string[], opened: typeof OPENED | typeof TCP = OPENED) {
  const edge = await startMinimalEdge(t, {
    onConnect: (side) => side.send({ event: 'open', ...opened }),
  })
  const tunnel = startProcess(t, ['tunnel', ...args], { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url })
  return { tunnel, side: await edge.connection() }
}

/** A stream through which the local server has responded. */
async function startRequest(side: EdgeSide) {
  const stream = openStream(side)
  stream.write('x')
  await once(stream, 'readable')
  return stream
}

test('tunnel prints the URL and each request, and asks for the flags', async (t) => {
  const { tunnel, side } = await startTunnel(t, ['3000', '--name', 'my-app', '--pool'])
  assert.match(side.request.client ?? '', /^adit \d+\.\d+\.\d+$/)
  const { client: _client, session: _session, resume: _resume, ...request } = side.request
  assert.deepEqual(request, {
    type: 'http',
    name: 'my-app',
    pool: true,
    target: 'http://localhost:3000',
    idleConnections: 500,
  })
  await tunnel.waitFor(/^Forwarding to http:\/\/localhost:3000\. Press Ctrl-C to stop\.$/m, 'stderr')
  const transfer = { bytesIn: 120, bytesOut: 4096, ms: 12.6 }
  side.send({ event: 'request', method: 'GET', path: '/hostile\u001b[31m', status: 200, ...transfer })
  side.send({ event: 'request', method: 'GET', path: '/\u202ea', status: 404, ...transfer })
  await tunnel.waitFor(
    /^\d\d:\d\d:\d\d {2}404 {5}13 ms {2}120 B in, 4\.0 KiB out {3,}GET {4}\/\ufffda$/m,
    'stderr',
  )
  side.session.goAway()
  const { code, stdout, stderr } = await tunnel.stop('SIGINT')
  assert.equal(code, 0)
  assert.equal(stdout, `${OPENED.url}\n`)
  assert.ok(!stderr.includes('\u001b') && !stderr.includes('hostile'), 'control characters of a path')
  assert.match(stderr, /^Tunnel closed\.$/m)
})

test('the commands of other clients open a tunnel, and SIGHUP closes it as SIGTERM does', async (t) => {
  const edge = await startMinimalEdge(t)
  for (const [index, args] of [
    ['http', '3000'],
    ['tunnel', 'http', '3000'],
  ].entries()) {
    const tunnel = startProcess(t, args, { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url })
    const side = await edge.connection(index)
    await tunnel.waitFor(/^Forwarding to http:\/\/localhost:3000\./m, 'stderr')
    tunnel.child.kill('SIGHUP')
    await until('the client stops', () => side.isGoingAway)
    side.session.goAway()
    const { code, stderr } = await tunnel.ended
    assert.equal(code, 0)
    assert.match(stderr, /^Tunnel closed\.$/m)
  }
})

test('tunnel tcp prints the address and each connection; with --json each line is an event', async (t) => {
  const { tunnel, side } = await startTunnel(t, ['tcp', '5432'], TCP)
  assert.equal(side.request.type, 'tcp')
  await tunnel.waitFor(/^Forwarding to tcp:\/\/localhost:5432\. Press Ctrl-C to stop\.$/m, 'stderr')
  side.send({ event: 'connection', bytesIn: 120, bytesOut: 4096, ms: 5321.2 })
  await tunnel.waitFor(/^\d\d:\d\d:\d\d {3}5321 ms {2}120 B in, 4\.0 KiB out$/m, 'stderr')
  side.send({ event: 'connection', bytesIn: 120, bytesOut: 4096, ms: 3_900_000 })
  await tunnel.waitFor(/^\d\d:\d\d:\d\d {4}1h 05m {2}120 B in, 4\.0 KiB out$/m, 'stderr')
  const { code, stdout } = await tunnel.stop()
  assert.deepEqual([code, stdout], [0, `${TCP.url}\n`])

  const target = `tcp://127.0.0.1:${await startEcho(t)}`
  const asJson = await startTunnel(t, ['tcp', target, '--json'], TCP)
  asJson.side.send({ event: 'connection', bytesIn: 1, bytesOut: 2, ms: 3.4 })
  await asJson.tunnel.waitFor(/"connection"/)
  const lines = (await asJson.tunnel.stop()).stdout.trim().split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    [
      { event: 'open', ...TCP, target },
      { event: 'connection', bytesIn: 1, bytesOut: 2, ms: 3 },
    ],
  )
})

test('Ctrl-C completes what is in progress; a second one stops at once', async (t) => {
  const port = String(await startEcho(t))
  const completed = await startTunnel(t, [`127.0.0.1:${port}`])
  const stream = await startRequest(completed.side)
  completed.tunnel.child.kill('SIGINT')
  await completed.tunnel.waitFor(/^Finishing 1 request\. Press Ctrl-C again to stop now\.$/m, 'stderr')
  stream.resume().end()
  await once(stream, 'end')
  assert.equal((await completed.tunnel.ended).code, 0)

  const stopped = await startTunnel(t, ['tcp', `127.0.0.1:${port}`], TCP)
  const streams = [await startRequest(stopped.side), await startRequest(stopped.side)]
  stopped.tunnel.child.kill('SIGINT')
  await stopped.tunnel.waitFor(/^Finishing 2 connections\. /m, 'stderr')
  // A signal that follows within a second is the same Ctrl-C, forwarded by npm.
  const timer = setTimeout(() => stopped.tunnel.child.kill('SIGINT'), 1_100)
  atEnd(t, () => clearTimeout(timer))
  assert.equal((await stopped.tunnel.ended).code, 0)
  await until('reset', () => streams.every(({ destroyed }) => destroyed))
})

test('a rejected tunnel has the exit code of its reason, and advice', async (t) => {
  for (const [status, error, exitCode, advice] of [
    [400, 'invalid_request', 2, /some reason\.$/],
    [401, 'unauthorized', 4, /The API key is from ADIT_API_KEY; set it to a valid key/],
    [403, 'not_provisioned', 1, /some reason\.$/],
    [403, 'tcp_disabled', 1, /some reason\.$/],
    [409, 'name_taken', 1, /some reason\.$/],
    [429, 'too_many_tunnels', 1, /some reason\.$/],
  ] as const) {
    const edge = await startMinimalEdge(t, {
      respond: (_request, response) =>
        void response.writeHead(status).end(JSON.stringify({ error, message: 'Some reason.' })),
    })
    const env = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url }
    const { code, stdout, stderr } = await run(t, ['tunnel', '3000', '--json'], env)
    assert.equal(code, exitCode, error)
    assert.equal(stdout, '')
    const { error: printed, message } = JSON.parse(stderr)
    assert.equal(printed, error === 'invalid_request' ? 'usage' : error)
    assert.match(message, /^The edge at http:\S+ rejected the tunnel: some reason\./)
    assert.match(message, advice)
  }
})

test('a tunnel that is closed with a reason prints it and exits with 1', async (t) => {
  const edge = await startMinimalEdge(t)
  const env = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: edge.url }
  const tunnel = startProcess(t, ['tunnel', '3000'], env)
  const side = await edge.connection()
  await tunnel.waitFor(/Forwarding to/, 'stderr')
  side.send({ event: 'close', reason: 'requested', message: 'Ann closed this tunnel.' })
  side.session.close()
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 1)
  assert.match(stderr, /Ann closed this tunnel\.\n$/)
  assert.equal(edge.connections.length, 1)
})

test('a reason that passes is shown once, without advice to retry', async (t) => {
  const body = { error: 'unavailable', message: 'The edge is stopping. Retry shortly.' }
  const server = createHttpServer((_request, response) => response.writeHead(503).end(JSON.stringify(body)))
  const port = await listen(t, server)
  const edge = `http://127.0.0.1:${port}`
  const tunnel = startProcess(t, ['tunnel', '3000', '--edge', edge], { ADIT_API_KEY: 'adit_key' })
  const [line] = await tunnel.waitFor(/^!.*$/m, 'stderr')
  assert.equal(line, `! The edge at ${edge} rejected the tunnel: the edge is stopping. Retrying …`)
})

test('for a certificate of an unknown CA, commands say how to trust it', async (t) => {
  const made = makeCertificate(t, 'IP:127.0.0.1')
  if (!made) return t.skip('openssl is not installed here')
  const [key, cert] = [readFileSync(made.key), readFileSync(made.certificate)]
  const server = createHttpsServer({ key, cert }, (_request, response) => response.writeHead(404).end())
  const port = await listen(t, server)
  const url = `https://127.0.0.1:${port}`
  const advice =
    /self-signed certificate\. To trust your own CA, set NODE_EXTRA_CA_CERTS to [^;]+ trusts it\. ?/
  const env = { ADIT_API_KEY: 'adit_key', ADIT_URL: url }
  const tunnel = startProcess(t, ['tunnel', '3000', '--edge', url], env)
  const [line] = await tunnel.waitFor(/^!.*$/m, 'stderr')
  assert.match(line, new RegExp(`${advice.source}Retrying …$`))
  const api = await run(t, ['workspace'], env)
  assert.match(api.stderr, new RegExp(`${advice.source}$`, 'm'))
  const trusting = { ...env, NODE_EXTRA_CA_CERTS: made.certificate }
  const trusted = await startProcess(t, ['tunnel', '3000', '--edge', url], trusting).ended
  assert.match(trusted.stderr, /is not an Adit edge/)
})

test('invalid targets and names are usage errors, also with the commands of other clients', async (t) => {
  const env = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: 'http://127.0.0.1:9' }
  for (const [args, message] of [
    [['tunnel', 'tcp'], /Missing argument <target>\. Run `adit tunnel tcp --help` for usage\./],
    [['tunnel', 'tcp', 'http://localhost:80'], /Invalid target "http:\/\/localhost:80" .*tcp:\/\//],
    [['tunnel', 'tcp', '0'], /Invalid port "0" \(expected 1–65535\)/],
    [['tunnel', '3000', '4000'], /Unexpected argument "4000"/],
    [['tunnel', '3000', '--pool=yes'], /The flag --pool takes no value/],
    [['tunnel', 'http'], /Missing argument <target>/],
    [['tunnel', 'web'], /Invalid target "web" \(expected a port, host:port, /],
    [['tunnel', '0'], /Invalid port "0"/],
    [['tunnel', 'localhost:'], /Invalid port ""/],
    [['tunnel', 'localhost:70000'], /Invalid port "70000"/],
    [['tunnel', '70000'], /Invalid port "70000" \(expected 1–65535\)\.\n$/],
    [['tunnel', 'localhost:web'], /Invalid port "web" \(expected 1–65535\)\.\n$/],
    [
      ['tcp', 'x'],
      /Invalid target "x" \(expected a port, host:port, a URL with tcp:\/\/ and a port, or unix:<path>\)\.\n$/,
    ],
    [
      ['tunnel', 'http', 'x'],
      /"x" \(expected a port, host:port, a URL with .* and a port, unix:<path>, or --serve <folder>\)\.\n$/,
    ],
    [['tunnel', 'http://localhost'], /Invalid target "http:\/\/localhost" .*https:\/\/ and a port/],
    [['tunnel', '3000', '--name', 'My_App'], /Invalid --name "My_App" \(expected lower-case letters, digits/],
  ] as const) {
    assertFailed(await run(t, [...args], env), 2, message, args.join(' '))
  }
})
