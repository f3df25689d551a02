// Bytes of one visitor's request never become part of another's: a connection to the local server is reused
// only if nothing of a request can be left in it.
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import type { Test } from '../../support/cleanup.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { connectClient } from '../../support/edges/tunneled.ts'
import { fetchHost, openTunnel, startLocal } from '../../support/edges/tunnels.ts'
import { ambiguousFramings, sendRaw } from '../../support/network/raw.ts'
import { unreadBodyServers } from '../../support/network/unread-bodies.ts'
import { until } from '../../support/until.ts'

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const [key = ''] = keys
const ROUNDS = 10
const VISITORS = 4

/** The first line of the next request on the connection becomes the value of its last header. */
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: internal\r\nX-Next: '
/** The next request on the connection becomes its body. */
const CAPTURE = 'POST /capture HTTP/1.1\r\nHost: internal\r\nContent-Length: 120\r\n\r\n'

let tunnels = 0
async function open(t: Test, port: number) {
  tunnels += 1
  return openTunnel(t, { edge, key, port, name: `app-${tunnels}` })
}

/** A GET whose body is another request; the server leaves it unread. */
const attack = (host: string, body: string, framing: Framing = withLength, method = 'GET') =>
  fetchHost(edge, host, { method, path: '/attacker', body: Buffer.from(body), headers: framing(body) })

const visit = async (host: string, path: string) =>
  String((await fetchHost(edge, host, { path, headers: { cookie: `session=secret${path}` } })).body)

type Framing = (body: string) => Record<string, string>
const withLength: Framing = (body) => ({ 'content-length': String(body.length) })
const inChunks: Framing = () => ({ 'transfer-encoding': 'chunked' })

test('a Transfer-Encoding other than one "chunked" of HTTP/1.1 is 400, and the connection closes', async (t) => {
  const local = await startLocal(t)
  const { host } = await open(t, local.port)
  for (const to of [host, 'unknown.tunnels.test'])
    for (const [version, header] of ambiguousFramings) {
      const get = `GET /first HTTP/1.1\r\nHost: ${host}\r\n\r\n`
      const { socket, received, closed } = connectClient(
        edge.port,
        `${get}POST / HTTP/${version}\r\nHost: ${to}\r\n${header}\r\n\r\n0\r\n\r\n${get}`,
      )
      assert.equal(await closed, 'end', header)
      socket.destroy()
      const statuses = [...received().matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
      assert.deepEqual(statuses, ['200', '400'], header)
    }
  assert.deepEqual(new Set(local.requests.map(({ url }) => url)), new Set(['/first']))
})

test('the local server gets Transfer-Encoding as the edge writes it', async (t) => {
  const local = await startLocal(t)
  const { host } = await open(t, local.port)
  const bytes = (framing: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${framing}`
  const cases: [sent: string, forwarded: string[]][] = [
    [bytes('tRANSFER-eNCODING:\tchunked \r\n\r\n2\r\nhi\r\n0\r\n\r\n'), ['Transfer-Encoding: chunked']],
    [bytes('Content-Length: 2\r\n\r\nhi'), ['Content-Length: 2']],
    [bytes('Content-Length: 0\r\n\r\n'), ['Content-Length: 0']],
    [bytes('\r\n'), []],
  ]
  for (const [sent, expected] of cases) {
    assert.equal((await sendRaw(edge.url, sent)).status, 200)
    const { rawHeaders = [] } = local.requests.at(-1) ?? {}
    const framing = rawHeaders.flatMap((name, index) =>
      index % 2 === 0 && /^(transfer-encoding|content-length)$/i.test(name)
        ? [`${name}: ${rawHeaders[index + 1]}`]
        : [],
    )
    assert.deepEqual(framing, expected)
  }
})

for (const [server, start] of Object.entries(unreadBodyServers)) {
  test(`${server}: a request in the unread body of a GET gets no response that another visitor receives`, async (t) => {
    const port = await start(t)
    if (port === undefined) return t.skip('not installed here')
    const { host } = await open(t, port)
    for (const framing of [withLength, inChunks])
      for (let round = 0; round < ROUNDS; round += 1) {
        const paths = Array.from({ length: VISITORS }, (_, index) => `/visitor-${round}-${index}`)
        const own = await attack(host, SMUGGLED, framing)
        assert.equal(String(own.body), '/attacker')
        assert.deepEqual(await Promise.all(paths.map((path) => visit(host, path))), paths)
      }
  })

  test(`${server}: no visitor's request becomes the body of a smuggled one`, async (t) => {
    const port = await start(t)
    if (port === undefined) return t.skip('not installed here')
    const { host } = await open(t, port)
    for (let round = 0; round < ROUNDS; round += 1) {
      assert.equal((await attack(host, CAPTURE)).status, 200)
      assert.equal(await visit(host, `/visitor-${round}`), `/visitor-${round}`)
    }
    assert.doesNotMatch(await visit(host, '/captured'), /secret/)
  })
}

test('Python: a request in the unread body of a GET or HEAD is not executed', async (t) => {
  const port = await unreadBodyServers["Python's http.server"]?.(t)
  if (port === undefined) return t.skip('not installed here')
  const { host } = await open(t, port)
  const whole = 'GET /smuggled HTTP/1.1\r\nHost: internal\r\n\r\n'
  for (const method of ['GET', 'HEAD']) {
    assert.equal((await attack(host, whole, withLength, method)).status, 200)
    // Python closes while most of this arrives, so its response may be lost.
    await attack(host, whole.repeat(5_000), withLength, method)
  }
  assert.deepEqual((await visit(host, '/seen')).split('\n'), [...Array(4).fill('/attacker'), '/seen'])
})

test('only a body that servers do not expect has the connection closed by the local server', async (t) => {
  const local = await startLocal(t)
  const { host } = await open(t, local.port)
  const sent: [method: string, body: string, connection: string][] = [
    ['GET', '', 'keep-alive'],
    ['GET', 'x', 'close'],
    ['HEAD', 'x', 'close'],
    ['DELETE', 'x', 'close'],
    ['POST', 'x', 'keep-alive'],
    ['PUT', 'x', 'keep-alive'],
    ['PATCH', 'x', 'keep-alive'],
  ]
  for (const [method, body, connection] of sent) {
    const headers = body === '' ? {} : withLength(body)
    await fetchHost(edge, host, { method, body: Buffer.from(body), headers })
    assert.equal(local.requests.at(-1)?.headers.connection, connection, `${method} ${body}`)
  }
})

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

/** What is sent first, its response, and whether the next GET may use the same connection. */
type Reuse = readonly [what: string, head: string, response: string, isReused: boolean]

const reuses: readonly Reuse[] = [
  ['a GET', 'GET / HTTP/1.1\r\n', OK, true],
  ['a DELETE without a body', 'DELETE / HTTP/1.1\r\n', OK, true],
  ['a POST with an empty body', 'POST / HTTP/1.1\r\nContent-Length: 0\r\n', OK, true],
  ['a response in chunks', 'GET / HTTP/1.1\r\n', `${CHUNKED}2\r\nok\r\n0\r\n\r\n`, true],
  ['a 304', 'GET / HTTP/1.1\r\n', 'HTTP/1.1 304 Not Modified\r\n\r\n', true],
  ['a 204', 'DELETE / HTTP/1.1\r\n', 'HTTP/1.1 204 No Content\r\n\r\n', true],
  ['a HEAD that says nothing of a body', 'HEAD / HTTP/1.1\r\n', 'HTTP/1.1 200 OK\r\n\r\n', false],
  ['a HEAD without a body', 'HEAD / HTTP/1.1\r\n', 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', true],
  ['a HEAD that announces a body', 'HEAD / HTTP/1.1\r\n', OK.slice(0, -2), false],
  ['a 304 with a length', 'GET / HTTP/1.1\r\n', 'HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\n', false],
  ['a 204 in chunks', 'GET / HTTP/1.1\r\n', CHUNKED.replace('200', '204'), false],
  ['more than the response', 'GET / HTTP/1.1\r\n', OK + OK, false],
  ['a GET with a body', 'GET / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi', OK, false],
  ['a POST with a body', 'POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi', OK, false],
  [
    'a body in chunks',
    'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
    OK,
    false,
  ],
  ['an empty body in chunks', 'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', OK, false],
  ['a part of a body', 'POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhi', OK, false],
  ['an expectation', 'POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi', OK, false],
  ['an upgrade that the server declines', `GET / HTTP/1.1\r\n${UPGRADE}`, OK, false],
]

async function checkReuse(t: TestContext, [, head, response, isReused]: Reuse) {
  const tunnel = await openRawTunnel(edge, key)
  t.after(() => tunnel.close())
  tunnel.onStream((stream) =>
    stream.on('data', (chunk) => {
      const isNext = String(chunk).startsWith('GET /next')
      if (isNext || /^[A-Z]+ \//.test(String(chunk))) stream.write(isNext ? OK : response)
    }),
  )
  const [firstLine, rest = ''] = head.split(/(?<=HTTP\/1\.1\r\n)/)
  const end = rest.includes('\r\n\r\n') ? '' : '\r\n'
  const client = connectClient(edge.port, `${firstLine}Host: ${tunnel.host}\r\n${rest}${end}`)
  t.after(() => client.socket.destroy())
  await until('the response arrives', () => /HTTP\/1\.1 [2-5]/.test(client.received()))
  const [used] = tunnel.streams()
  await fetchHost(edge, tunnel.host, { path: '/next' })
  assert.equal(tunnel.streams().length, isReused ? 1 : 2)
  if (!isReused) await until('the edge has closed it', () => used?.destroyed || used?.readableEnded)
}

for (const reuse of reuses.filter(([, , , isReused]) => isReused))
  test(`after ${reuse[0]}: the connection to the local server is reused`, (t) => checkReuse(t, reuse))

for (const reuse of reuses.filter(([, , , isReused]) => !isReused))
  test(`after ${reuse[0]}: the connection to the local server is closed`, (t) => checkReuse(t, reuse))

test('a connection on which bytes arrive between two requests is closed', async (t) => {
  const tunnel = await openRawTunnel(edge, key)
  t.after(() => tunnel.close())
  tunnel.respond(OK)
  await fetchHost(edge, tunnel.host)
  const [used] = tunnel.streams()
  used?.write(OK)
  await until('the edge has reset it', () => used?.destroyed)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  assert.equal(tunnel.streams().length, 2)
})

test('a local server that does not close its side is disconnected after a body', async (t) => {
  const tunnel = await openRawTunnel(edge, key)
  t.after(() => tunnel.close())
  tunnel.respond(OK)
  await fetchHost(edge, tunnel.host, { method: 'POST', body: Buffer.from('hi') })
  await until('the edge has reset it', () => tunnel.streams()[0]?.destroyed)
})
