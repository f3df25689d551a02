// Header limits: the edge rejects requests above them, and no request disconnects the tunnel client.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openTunnel } from '../../support/edges/tunnels.ts'
import { sendRaw } from '../../support/network/raw.ts'

const { edge, keys, local } = await startStandaloneEdge({ after }, ['acme'])
const [key = ''] = keys

const head = (host: string, headers: string) =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${headers}\r\n`

test('no request headers make a tunnel unavailable to others', async (t) => {
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  const { host } = tunnel
  const heads = {
    'many headers': head(host, 'a:\r\n'.repeat(1_100)),
    'one large header': head(host, `Cookie: ${'a'.repeat(16_300)}\r\n`),
    'a long port': head(`${host}:${'0'.repeat(16_000)}`, ''),
    'many forwarded addresses': head(host, `X-Forwarded-For: ${'1,'.repeat(8_100)}\r\n`),
  }
  for (const [what, bytes] of Object.entries(heads)) {
    const responses = await Promise.all(Array.from({ length: 20 }, () => sendRaw(edge.url, bytes)))
    for (const { status } of responses) assert.ok([200, 404, 431].includes(status), `${what}: ${status}`)
    assert.equal((await fetchHost(edge, host)).status, 200, what)
  }
  assert.deepEqual(
    tunnel.events().filter(({ event }) => event === 'lost'),
    [],
  )
})

test('a request may have 200 headers and 32 names in Connection; more is 431 with the reason', async (t) => {
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'limits' })
  const names = (count: number) => `Connection: ${Array(count).fill('a').join(',')}\r\n`
  // `head` adds two headers, Host and Connection, and one name in Connection.
  const cases: [headers: string, status: number][] = [
    ['a:\r\n'.repeat(198), 200],
    ['a:\r\n'.repeat(199), 431],
    [names(31), 200],
    [names(32), 431],
    [names(5_900), 431],
    [names(16).repeat(2), 431],
  ]
  for (const [headers, expected] of cases) {
    const { status, body } = await sendRaw(edge.url, head(host, headers))
    assert.equal(status, expected, headers.slice(0, 100))
    if (expected === 431) assert.match(body, /at most (200 headers|32 names in Connection)/)
  }
  const upgrading = 'Connection: Upgrade\r\nUpgrade: x\r\n'
  const upgrade = await sendRaw(edge.url, head(host, upgrading + 'a:\r\n'.repeat(200)))
  assert.equal(upgrade.status, 431)
  const health = head('x', 'a:\r\n'.repeat(200)).replace('/', '/.adit/health')
  assert.equal((await sendRaw(edge.url, health)).status, 431)
})

test('headers that Connection names are removed, however many names there are in a response', async () => {
  const { host, respond } = await openRawTunnel(edge, key)
  const named = Array.from({ length: 900 }, (_, index) => `x-${index}`)
  respond(
    `HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Kept: yes\r\nConnection: ${named.join(', ')}\r\n` +
      `${named.map((name) => `${name}: 1\r\n`).join('')}\r\n`,
  )
  const { status, headers } = await fetchHost(edge, host)
  assert.equal(status, 200)
  assert.equal(headers['x-kept'], 'yes')
  assert.deepEqual(
    Object.keys(headers).filter((name) => /^x-\d/.test(name)),
    [],
  )
})

test('a client cannot replace headers of the edge with Forwarded, or with underscores in names', async (t) => {
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'underscores' })
  const before = local.requests.length
  const bytes = [
    'POST / HTTP/1.1',
    `Host: ${host}`,
    ...['X_Forwarded_For', 'x_forwarded-host', 'X-Forwarded_Proto', 'Content_Length', 'Keep_Alive'].map(
      (name) => `${name}: 6`,
    ),
    'Forwarded: for=6',
    'x_other: kept',
    'Transfer-Encoding: chunked',
    'Connection: close',
    '',
    '0\r\nX_Forwarded_For: 6\r\nx_other: kept\r\n\r\n',
  ].join('\r\n')
  assert.equal((await sendRaw(edge.url, bytes)).status, 200)
  const request = local.requests[before] ?? assert.fail()
  const replacing = [...request.rawHeaders, ...request.rawTrailers].filter((text) =>
    /_|^Forwarded/.test(text),
  )
  assert.deepEqual(replacing, ['x_other', 'x_other'])
})

test('headers for what only a proxy knows are not taken from clients: address, host, scheme, path', async (t) => {
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'proxied' })
  const forged = [
    ...['X-Real-IP', 'X-Client-IP', 'Client-IP', 'True-Client-IP', 'CF-Connecting-IP', 'Fastly-Client-IP'],
    ...['X-Cluster-Client-IP', 'X-Remote-Addr', 'X-Forwarded', 'X-Forwarded-Port', 'X-Forwarded-Server'],
    ...['X-Forwarded-Scheme', 'X-Forwarded-Ssl', 'X-Forwarded-Prefix', 'X-Forwarded-User', 'X-Scheme'],
    ...['X-Original-URL', 'X-Original-Host', 'X-Original-Forwarded-For', 'X-Rewrite-URL', 'X-Host'],
    ...['Front-End-Https', 'Proxy', 'X_Real_IP', 'X_Original_URL', 'CLIENT_IP'],
  ]
  const kept = ['X-Request-Id', 'X-Requested-With', 'X-Other']
  const before = local.requests.length
  for (const connection of ['close', 'Upgrade\r\nUpgrade: unknown']) {
    const headers = [...forged, ...kept].map((name) => `${name}: 6\r\n`).join('')
    const bytes = `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: ${connection}\r\n${headers}\r\n`
    await sendRaw(edge.url, bytes, 1_000)
  }
  const trailers = [...forged, ...kept].map((name) => `${name}: 6\r\n`).join('')
  const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`
  await sendRaw(edge.url, `${head}0\r\n${trailers}\r\n`)
  const requests = local.requests.slice(before)
  assert.ok(requests.length >= 2)
  for (const { rawHeaders, rawTrailers } of requests) {
    const received = [...rawHeaders, ...rawTrailers]
    const names = received.filter((_, index) => index % 2 === 0 && received[index + 1] === '6')
    assert.deepEqual(names, kept)
  }
})

test('the trace context of a request reaches the local server unchanged', async (t) => {
  const { host } = await openTunnel(t, { edge, key, port: local.port, name: 'traced' })
  const context = {
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    tracestate: 'a=1,b=2',
  }
  const { body } = await fetchHost(edge, host, { headers: context })
  const { traceparent, tracestate } = JSON.parse(body.toString()).headers
  assert.deepEqual({ traceparent, tracestate }, context)
})
