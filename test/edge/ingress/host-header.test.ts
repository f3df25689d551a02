// --host-header and the Host header of a name: what the local server gets, and what the visitor gets back.
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { after, test } from 'node:test'
import { WebSocketServer } from 'ws'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { startHttp } from '../../support/edges/tunneled.ts'
import { fetchHost, openSocket, openTunnel } from '../../support/edges/tunnels.ts'
import { run } from '../../support/processes/process.ts'

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'], {
  ADIT_EDGE_PUBLIC: 'https',
})
const [key = ''] = keys
/** Returns its request headers, and redirects where the request asks it to. */
const local = await startHttp({ after }, ({ headers }, response) => {
  const to = headers['x-redirect']
  response.writeHead(to ? 302 : 200, to ? { location: String(to) } : {})
  response.end(JSON.stringify(headers))
})
const target = `localhost:${local.port}`
const open = (name: string, ...flags: string[]) =>
  openTunnel({ after }, { edge, key, port: local.port, name, flags })
const [plain, rewritten, literal] = await Promise.all([
  open('plain'),
  open('rewritten', '--host-header', 'rewrite'),
  open('literal', '--host-header', 'app.test:8000'),
])

async function received(host: string, headers: Record<string, string> = {}): Promise<IncomingHttpHeaders> {
  return JSON.parse(String((await fetchHost(edge, host, { headers })).body))
}

test('without the flag, the local server gets the host and origin of the tunnel', async () => {
  const origin = `https://${plain.host}`
  const headers = await received(plain.host, { origin, referer: `${origin}/a` })
  assert.equal(headers.host, plain.host)
  assert.equal(headers.origin, origin)
  assert.equal(headers.referer, `${origin}/a`)
  assert.equal(headers['x-forwarded-host'], plain.host)
  assert.equal(headers['x-forwarded-proto'], 'https')
})

for (const [value, { host }, localHost] of [
  ['rewrite', rewritten, target],
  ['a host', literal, 'app.test:8000'],
] as const)
  test(`with ${value}, Host, Origin, Referer and the headers of the proxy name the local origin`, async () => {
    const origin = `https://${host}`
    const headers = await received(host, { origin, referer: `${origin}/a?b=${origin}/` })
    assert.equal(headers.host, localHost)
    assert.equal(headers.origin, `http://${localHost}`)
    assert.equal(headers.referer, `http://${localHost}/a?b=${origin}/`)
    assert.equal(headers['x-forwarded-host'], localHost)
    assert.equal(headers['x-forwarded-proto'], 'http')
  })

test('foreign origins stay as they are, and those that the local server would trust become null', async () => {
  const { host } = rewritten
  const foreign = [
    `http://${host}`,
    `https://${host}:8443`,
    `https://${host}.evil.test`,
    `https://evil.test`,
    `https://user@${host}`,
    `https://${host}\\@evil.test`,
    'null',
    'chrome-extension://abcdef',
  ]
  for (const origin of foreign) {
    const headers = await received(host, { origin, referer: `${origin}/` })
    assert.equal(headers.origin, origin)
    assert.equal(headers.referer, `${origin}/`)
  }
  for (const origin of [`http://${target}`, `https://${target}`, `HTTP://LOCALHOST:${local.port}`]) {
    const headers = await received(host, { origin, referer: `${origin}/form` })
    assert.equal(headers.origin, 'null', origin)
    assert.equal(headers.referer, undefined, origin)
  }
})

test('Location of the local server is mapped back, others stay as they are', async () => {
  const origin = `https://${rewritten.host}`
  const cases = {
    '/relative': '/relative',
    [`http://${target}/a?b#c`]: `${origin}/a?b#c`,
    [`https://${target}`]: origin,
    [`//${target}/a`]: `${origin}/a`,
    [`http://${target}.evil.test/`]: `http://${target}.evil.test/`,
    [`http://${target}@evil.test/`]: `http://${target}@evil.test/`,
    [`https://example.com/?to=http://${target}/`]: `https://example.com/?to=http://${target}/`,
    'http://localhost/': 'http://localhost/',
  }
  for (const [location, expected] of Object.entries(cases)) {
    const { headers, body } = await fetchHost(edge, rewritten.host, { headers: { 'x-redirect': location } })
    assert.equal(headers.location, expected)
    assert.equal(JSON.parse(String(body))['x-redirect'], location, 'the body is not changed')
  }
  // nginx appends the port on which it listens to the host of the request.
  const { headers } = await fetchHost(edge, literal.host, {
    headers: { 'x-redirect': `http://app.test:${local.port}/folder/` },
  })
  assert.equal(headers.location, `https://${literal.host}/folder/`)
})

test('upgrades get the same headers', async (t) => {
  const upgraded = Promise.withResolvers<IncomingHttpHeaders>()
  const server = createServer()
  new WebSocketServer({ server }).on('connection', (_, { headers }) => upgraded.resolve(headers))
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  server.listen(0, 'localhost', resolve)
  await listening
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const flags = ['--host-header', 'rewrite']
  const { host } = await openTunnel(t, { edge, key, port, name: 'upgraded', flags })
  const socket = await openSocket(edge, host, { headers: { origin: `https://${host}` } })
  t.after(() => socket.terminate())
  const headers = await upgraded.promise
  assert.equal(headers.host, `localhost:${port}`)
  assert.equal(headers.origin, `http://localhost:${port}`)
  assert.equal(headers['x-forwarded-host'], `localhost:${port}`)
})

test('client and edge reject a value that is not a host', async (t) => {
  const invalid = [
    '',
    'a b',
    'a\r\nX-Injected: 1',
    'http://a',
    'a/b',
    'user@a',
    'a:0',
    'a:65536',
    'a..b',
    'a.',
    '[::1',
    '[1:2]',
    'é.test',
    `${'a'.repeat(250)}.test:80`,
  ]
  for (const hostHeader of invalid) {
    const request = { target: 'http://localhost:3000', hostHeader }
    await assert.rejects(
      openRawTunnel(edge, key, request),
      /invalid hostHeader \(expected "rewrite", or a host/,
    )
  }
  await assert.rejects(openRawTunnel(edge, key, { hostHeader: 'rewrite' }), /invalid hostHeader/)
  await assert.rejects(openRawTunnel(edge, key, { target: 'http://a\r\nb' }), /Adit-Tunnel/)
  for (const flags of [
    ['3000', '--host-header', 'a\r\nb: c'],
    ['--serve', '.', '--host-header', 'rewrite'],
  ]) {
    const { code, stderr } = await run(t, ['tunnel', ...flags, '--edge', edge.url], { ADIT_API_KEY: key })
    assert.equal(code, 2)
    assert.match(stderr, /--host-header/)
  }
})
