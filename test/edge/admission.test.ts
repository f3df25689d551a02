// The tunnel edge: admission, routing by host, headers, reconnection and shutdown.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import { createSecret } from '../../src/lib/credentials/secret.ts'
import { createFolder } from '../support/databases/create.ts'
import { openOwnTunnel, openRawTunnel, startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import {
  closedTunnels,
  fetchHost,
  newKey,
  openSocket,
  openTunnel,
  startLocal,
  startPlane,
  startTunnel,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { listen } from '../support/network/listen.ts'
import { sendRaw } from '../support/network/raw.ts'
import { freePort } from '../support/processes/ports.ts'
import { run } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

/** Responses that are invalid or not HTTP. */
const INVALID_RESPONSES = [
  'HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 200 a\u0001\u007fb\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 101 x\r\nContent-Length: 0\r\n\r\n',
  'no HTTP at all\r\n\r\n',
]

/** For tests that need no edge of their own. */
const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const key = keys[0] as string

test('with a tokens file tunnels open, carry traffic, and close when their key is removed', async (t) => {
  const { edge, file, keys, local } = await startStandaloneEdge(t, ['acme', 'beta'])
  const [acme = '', beta = ''] = keys
  const tunnel = await openTunnel(t, { edge, key: acme, port: local.port, name: 'app' })
  const other = await openTunnel(t, { edge, key: beta, port: local.port, name: 'app' })
  assert.deepEqual([tunnel.host, other.host], ['app.acme.tunnels.test', 'app.beta.tunnels.test'])
  assert.equal((await fetchHost(edge, tunnel.host, { path: '/bytes/100000' })).body.length, 100_000)
  const { tokens } = JSON.parse(readFileSync(file, 'utf8'))
  await run(t, ['tokens-file', 'remove', tokens[0].id, '--file', file], {})
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 4)
  assert.match(stderr, /revoked/)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
  assert.equal((await fetchHost(edge, other.host)).status, 200)
  edge.child.kill('SIGTERM')
  const { code: edgeCode, stderr: log } = await edge.ended
  assert.equal(edgeCode, 0)
  assert.deepEqual(
    closedTunnels(log).map(({ workspace, reason, requests }) => [workspace, reason, requests]),
    [
      ['acme', 'revoked', 1],
      ['beta', 'stopped', 1],
    ],
  )
  for (const key of keys) assert.ok(!log.includes(key), 'the log contains a key')
})

test('rejections have a reason: unknown key, unprovisioned workspace, taken or invalid name', async (t) => {
  const plane = await startPlane(t, ['acme'])
  await plane.admin('workspace', 'create', 'later')
  const edge = await startTunnelEdge(t, { plane })
  const { port } = await startLocal(t)
  const key = await newKey(plane, 'acme')
  await openTunnel(t, { edge, key, port, name: 'taken' })
  const rejection = async (options: { key: string; name: string }) => {
    const { code, stderr } = await startTunnel(t, { edge, port, ...options }).ended
    const { error, message } = JSON.parse(stderr.trim().split('\n').at(-1) as string)
    return [code, error, message]
  }
  assert.deepEqual(await rejection({ key: `${key.slice(0, -1)}!`, name: 'app' }), [
    4,
    'unauthorized',
    `The edge at ${edge.url} rejected the tunnel: unknown API key. Check that it was copied completely. ` +
      'The API key is from ADIT_API_KEY; set it to a valid key, or unset it to use a profile.',
  ])
  const credential = await plane.admin('edge', 'create', 'other')
  assert.match(
    String((await rejection({ key: credential, name: 'app' }))[2]),
    /this is an edge credential\. Use an API key of a workspace\./,
  )
  assert.match(
    String((await rejection({ key: createSecret('agent', randomBytes), name: 'app' }))[2]),
    /this is the key of an agent, which is valid at \/mcp only\. Use an API key\./,
  )
  const later = await newKey(plane, 'later')
  assert.deepEqual(await rejection({ key: later, name: 'app' }), [
    1,
    'not_provisioned',
    `The edge at ${edge.url} rejected the tunnel: the workspace "later" is not provisioned for tunnels. The operator ` +
      'provisions it with `adit admin workspace provision later`.',
  ])
  await plane.admin('workspace', 'provision', 'later')
  await openTunnel(t, { edge, key: later, port, name: 'app' })
  assert.deepEqual(await rejection({ key, name: 'taken' }), [
    1,
    'name_taken',
    `The edge at ${edge.url} rejected the tunnel: a tunnel is already open at taken.acme.localhost. ` +
      'Use another name, or --pool to share it with the client that has it.',
  ])
  for (const name of ['app.other', 'App', 'app-', 'a'.repeat(64)])
    assert.deepEqual((await rejection({ key, name })).slice(0, 2), [2, 'usage'], name)
})

test('no workspace receives requests of another: not by name, host or headers', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme', 'beta'])
  const [acme = '', beta = ''] = keys
  const victim = await openTunnel(t, { edge, key: acme, port: local.port, name: 'app' })
  const attacker = await startLocal(t)
  const mine = await openTunnel(t, { edge, key: beta, port: attacker.port, name: 'app' })

  // A request that names a host or a workspace is rejected: the tunnel is under the domain of the key's.
  for (const named of [{ host: victim.host }, { workspace: 'acme' }])
    await assert.rejects(openRawTunnel(edge, beta, { name: 'second', ...named }), /unknown member/)
  const second = await openRawTunnel(edge, beta, { name: 'second' })
  assert.equal(second.host, 'second.beta.tunnels.test')
  // A client joins, or replaces, only clients of its own workspace.
  const joined = await openRawTunnel(edge, beta, { name: 'app', pool: true })
  assert.equal(joined.host, mine.host)
  joined.close()
  await edge.waitFor(/"reason":"disconnected"/, 'stderr')

  // Requests are routed by the Host header only, and there must be exactly one.
  const seen = async (head: string) => {
    const before = [local.requests.length, attacker.requests.length]
    const { status } = await sendRaw(edge.url, `GET / HTTP/1.1\r\n${head}Connection: close\r\n\r\n`)
    return [
      status,
      local.requests.length - (before[0] as number),
      attacker.requests.length - (before[1] as number),
    ]
  }
  assert.deepEqual(await seen(`Host: ${victim.host}\r\nX-Forwarded-Host: ${mine.host}\r\n`), [200, 1, 0])
  assert.deepEqual(await seen(`Host: ${mine.host}\r\nForwarded: host=${victim.host}\r\n`), [200, 0, 1])
  assert.deepEqual(await seen(`Host: APP.acme.Tunnels.test.:8081\r\n`), [200, 1, 0])
  for (const head of [
    `Host: ${victim.host}\r\nHost: ${mine.host}\r\n`,
    'Host:\r\n',
    '',
    `Host: ${victim.host}, ${mine.host}\r\n`,
    `Host: ${victim.host}@${mine.host}\r\n`,
    `Host: ${mine.host}/${victim.host}\r\n`,
  ]) {
    const [status, ...reached] = await seen(head)
    assert.ok(status === 400 || status === 404, `${head}: ${status}`)
    assert.deepEqual(reached, [0, 0], head)
  }
  const absolute = await sendRaw(
    edge.url,
    `GET http://${victim.host}/ HTTP/1.1\r\nHost: ${mine.host}\r\nConnection: close\r\n\r\n`,
  )
  assert.equal(absolute.status, 400)
})

test('the bytes of one client are never parsed as the request of another', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n'
  for (const head of [
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close, content-length\r\nContent-Length: ${hidden.length}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close, transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n`,
  ])
    await sendRaw(edge.url, `${head}${hidden}\r\n0\r\n\r\n`)
  for (let turn = 0; turn < 5; turn++)
    assert.equal((await fetchHost(edge, host, { path: '/mine' })).status, 200)
  assert.deepEqual([...new Set(local.requests.map(({ url }) => url))].sort(), ['/', '/mine'])
})

test('a response before the request body is read blocks no other request', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  for (let turn = 1; turn <= 60; turn++) {
    const body = Buffer.alloc(turn * 5_000)
    assert.equal((await fetchHost(edge, host, { method: 'POST', path: '/early', body })).status, 200)
    assert.equal((await fetchHost(edge, host)).status, 200)
  }
})

test('headers are proxied unchanged, forwarding headers added and hop-by-hop headers removed', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  const headers = { 'X-Mine': 'é', te: 'gzip, trailers', 'keep-alive': '5', 'x-forwarded-for': '203.0.113.9' }
  const { body } = await fetchHost(edge, host, { path: '/a%20b?c=%2F', headers })
  const seen = JSON.parse(String(body))
  assert.equal(seen.url, '/a%20b?c=%2F')
  assert.equal(seen.headers.host, host)
  assert.equal(seen.headers['x-mine'], 'é')
  assert.equal(seen.headers['x-forwarded-for'], '203.0.113.9, 127.0.0.1')
  assert.equal(seen.headers['x-forwarded-host'], host)
  assert.equal(seen.headers['x-forwarded-proto'], 'http')
  assert.deepEqual([seen.headers.te, seen.headers['keep-alive']], ['trailers', undefined])
})

test('a local server may be down, slow or broken: clients get 502, and the tunnel stays open', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const port = await freePort()
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port, name: 'app' })
  const absent = await fetchHost(edge, tunnel.host)
  assert.equal(absent.status, 502)
  assert.match(String(absent.body), /^The local server cannot be reached\.\n/)
  await assert.rejects(openSocket(edge, tunnel.host), /502/)

  // Not HTTP, or an invalid status.
  const responses = [...INVALID_RESPONSES]
  const broken = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(responses.shift() ?? ''))
  })
  broken.listen(port, 'localhost')
  await once(broken, 'listening')
  for (const text of INVALID_RESPONSES) assert.equal((await fetchHost(edge, tunnel.host)).status, 502, text)
  broken.close()

  // Chunks arrive as they are sent, without buffering.
  const good = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'good' })
  const socket = connect(edge.port, '127.0.0.1')
  socket.write(`GET /drip/100 HTTP/1.1\r\nHost: ${good.host}\r\n\r\n`)
  const [first] = await once(socket, 'data')
  assert.ok(first.length < 100_000)
  socket.destroy()
  const events = tunnel.events().filter(({ event }) => event === 'request')
  assert.deepEqual(
    events.map(({ method, path, status }) => [method, path, status]),
    Array.from({ length: 2 + INVALID_RESPONSES.length }, () => ['GET', '/', 502]),
  )
})

test('invalid responses of a tunnel client do not crash the edge', async () => {
  for (const text of INVALID_RESPONSES) {
    const { host, respond } = await openRawTunnel(edge, key)
    respond(text)
    assert.equal((await fetchHost(edge, host)).status, 502, text)
  }
})

test('a closed tunnel counts no usage, even while a client continues to send', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const { host, streams, close } = await openRawTunnel(edge, keys[0] as string)
  const sending = connect(edge.port, '127.0.0.1')
  sending.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5000000\r\n\r\n${'x'.repeat(1_000)}`)
  await until('it has arrived', () => streams().length > 0)
  close()
  const [rejection] = await once(sending, 'data')
  assert.match(String(rejection), /^HTTP\/1.1 502 /)
  sending.write('x'.repeat(4_999_000))
  await until('the rest is read or rejected', () => sending.writableLength === 0 || sending.destroyed)
  sending.destroy()
  edge.child.kill('SIGTERM')
  const [{ bytesIn } = { bytesIn: 0 }] = closedTunnels((await edge.ended).stderr)
  assert.ok(bytesIn > 1_000 && bytesIn < 2_000, String(bytesIn))
})

test('many concurrent short requests all get a response', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  for (let turn = 0; turn < 5; turn++) {
    const responses = await Promise.all(Array.from({ length: 90 }, () => fetchHost(edge, host)))
    assert.deepEqual([...new Set(responses.map(({ status }) => status))], [200])
  }
})

test('a request with a body is proxied as a request, even if it asks for an upgrade', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  for (const upgrade of ['h2c', 'websocket', 'other'])
    for (const [framing, body] of [
      ['Content-Length: 5', 'hello'],
      ['Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
    ]) {
      const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, close\r\nUpgrade: ${upgrade}\r\n${framing}\r\n\r\n`
      const response = await sendRaw(edge.url, head + body)
      assert.equal(response.status, 200, upgrade)
      assert.equal(JSON.parse(/\{.*\}/.exec(response.body)?.[0] ?? '{}').received, 5)
    }
})

test('an upgraded connection may close one direction before the other', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const local = createServer({ allowHalfOpen: true }, (socket) => {
    let received = 0
    socket.once('data', () => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mine\r\n\r\n')
      socket.on('data', (chunk) => {
        received += chunk.length
      })
    })
    socket.on('end', () => setTimeout(() => socket.end(`received ${received}`), 50))
  })
  const port = await listen(t, local, 0, 'localhost')
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port, name: 'app' })
  const client = connect({ port: edge.port, host: '127.0.0.1', allowHalfOpen: true })
  client.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: Upgrade\r\nUpgrade: mine\r\n\r\n`)
  await once(client, 'data')
  client.end(Buffer.alloc(2_000_000))
  let received = ''
  client.on('data', (chunk) => {
    received += chunk
  })
  await once(client, 'end')
  assert.equal(received, 'received 2000000')
  edge.child.kill('SIGTERM')
  assert.ok(!(await edge.ended).stderr.includes('Warning'), 'Node printed a warning')
})

test('rejected clients that keep their connection open leak no file descriptors', async (t) => {
  if (process.platform !== 'linux') return t.skip('needs /proc')
  const { edge } = await startStandaloneEdge(t, ['acme'])
  const fds = () => readdirSync(`/proc/${edge.child.pid}/fd`).length
  const before = fds()
  const staying = Array.from({ length: 20 }, () => {
    const socket = connect(edge.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      'GET /.adit/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nmore',
    )
    return socket
  })
  await Promise.all(staying.map((socket) => once(socket, 'data')))
  await until('they are closed', () => fds() <= before + 1)
  for (const socket of staying) socket.destroy()
  edge.child.kill('SIGTERM')
  assert.equal((await edge.ended).code, 0)
})

test('a tunnel reopens under its name after the edge restarts', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    edge.child.kill(signal)
    await edge.ended
    Object.assign(edge, await edge.restart())
    await until('it is back', async () => (await fetchHost(edge, tunnel.host)).status === 200)
  }
  const events = tunnel.events().map(({ event }) => event)
  assert.deepEqual(events.filter((event) => event === 'open').length, 3, events.join())
})

test('a tunnel whose client was killed is closed within seconds, and its name is free', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const options = { edge, key: keys[0] as string, port: local.port, name: 'app' }
  const tunnel = await openTunnel(t, options)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  tunnel.child.kill('SIGKILL')
  await tunnel.ended
  const took = await until(
    'it is closed',
    async () => (await fetchHost(edge, tunnel.host)).status === 404,
    10_000,
  )
  t.diagnostic(`after ${Math.round(took)} ms`)
  assert.equal((await openTunnel(t, options)).host, tunnel.host)
})

test('an edge that shuts down completes requests in progress', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const long = fetchHost(edge, host, { path: '/drip/60' })
  await until('it is in progress', () => local.requests.length > 0)
  edge.child.kill('SIGTERM')
  assert.equal((await long).body.length, 600_000)
  assert.equal((await edge.ended).code, 0)
})

test('an edge with an invalid credential, or on a port or folder in use, exits with the reason', async (t) => {
  const plane = await startPlane(t)
  const env = { ADIT_URL: plane.url, ADIT_EDGE_KEY: 'adit_edge_bad', ADIT_EDGE_FOLDER: createFolder(t) }
  const rejected = await run(t, ['edge'], env)
  assert.deepEqual([rejected.code, rejected.stdout], [4, ''])
  assert.match(rejected.stderr, /^adit: http\S+ rejected the credential in ADIT_EDGE_KEY/)
  const { port } = new URL(plane.url)
  const good = { ...env, ADIT_EDGE_KEY: await plane.admin('edge', 'create', 'good') }
  const taken = await run(t, ['edge'], { ...good, ADIT_EDGE_PORT: port })
  assert.equal(taken.code, 1)
  assert.match(
    taken.stderr,
    new RegExp(`Another program listens on 127.0.0.1:${port}\\. Stop it, or set ADIT_EDGE_PORT`),
  )
  const running = await startTunnelEdge(t, { plane })
  const shared = { ...good, ADIT_EDGE_PORT: '0', ADIT_EDGE_FOLDER: running.folder }
  const second = await run(t, ['edge'], shared)
  assert.equal(second.code, 1)
  assert.match(
    second.stderr,
    new RegExp(`${running.folder} is in use by process ${running.child.pid}, .* ADIT_EDGE_FOLDER`),
  )
  for (const range of ['0-5', '5-4', '70000', 'x', '1-2-3']) {
    const { code, stderr } = await run(t, ['edge'], { ...good, ADIT_EDGE_TCP_PORTS: range })
    assert.equal(code, 2, range)
    assert.match(stderr, /ADIT_EDGE_TCP_PORTS must be a port or a range of ports/)
  }
  const none = await run(t, ['edge'], {})
  assert.equal(none.code, 2)
  assert.match(none.stderr, /ADIT_URL .* ADIT_EDGE_KEY/)
})

test('concurrent requests share a tunnel, and those beyond its capacity get 503', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  const sockets = await Promise.all(Array.from({ length: 480 }, () => openSocket(edge, host)))
  const responses = await Promise.all(
    Array.from({ length: 60 }, (_, index) => fetchHost(edge, host, { path: `/drip/${20 + index}` })),
  )
  const statuses = responses.map(({ status }) => status)
  assert.ok(statuses.filter((status) => status === 200).length >= 10, statuses.join())
  assert.ok(statuses.includes(503), statuses.join())
  assert.deepEqual(
    statuses.filter((status) => status !== 200 && status !== 503),
    [],
  )
  for (const socket of sockets) socket.terminate()
  await until('there is room again', async () => (await fetchHost(edge, host)).status === 200)
})
