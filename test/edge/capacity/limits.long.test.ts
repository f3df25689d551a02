// Limits per client and per workspace, and timeouts of slow requests.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, suite, test } from 'node:test'
import { atEnd } from '../../support/cleanup.ts'
import {
  openOwnTunnel,
  openRawTunnel,
  startStandaloneEdge,
  upgradeRequest,
} from '../../support/edges/standalone-edge.ts'
import { type Edge, fetchHost, openSocket, openTunnel, untilAccepted } from '../../support/edges/tunnels.ts'
import { collectText } from '../../support/network/collect.ts'
import { sendRaw } from '../../support/network/raw.ts'
import { until } from '../../support/until.ts'

type RawTunnel = Awaited<ReturnType<typeof openRawTunnel>>

/** Sends a request without its body, as a proxy that names its client. */
function postSilently(edge: Edge, host: string, client?: string) {
  const socket = connect(edge.port, '127.0.0.1')
  socket.on('error', () => {})
  const forwarded = client === undefined ? '' : `X-Forwarded-For: ${client}\r\n`
  socket.write(`POST / HTTP/1.1\r\nHost: ${host}\r\n${forwarded}Content-Length: 100\r\n\r\n`)
  return socket
}

const from = (client: string) => ({ headers: { 'x-forwarded-for': client } })

/** For tests that need no edge of their own. */
const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const key = keys[0] as string

// Two tests at a time: the first ones wait for half a minute.
suite('limits of an edge', { concurrency: 2 }, () => {
  test('a request whose body is slower than 1 KiB in 30 seconds gets 408, and its slot is released', async (t) => {
    const tunnel = await openOwnTunnel(t, edge, key)
    const head = `POST / HTTP/1.1\r\nHost: ${tunnel.host}\r\nTransfer-Encoding: chunked\r\n\r\n`
    const [slow, steady] = [connect(edge.port, '127.0.0.1'), connect(edge.port, '127.0.0.1')]
    for (const socket of [slow, steady]) socket.write(head)
    const sending = setInterval(() => {
      if (slow.writable) slow.write('1\r\nx\r\n')
      steady.write(`80\r\n${'x'.repeat(128)}\r\n`)
    }, 1_000)
    atEnd(t, () => clearInterval(sending))
    const silent = Array.from({ length: 498 }, () => postSilently(edge, tunnel.host))
    await untilAccepted(edge)
    await until('the tunnel is full', async () => (await fetchHost(edge, tunnel.host)).status === 503)
    const responses = [slow, ...silent].map((socket) => once(socket, 'data'))
    for (const [response] of await Promise.all(responses)) assert.match(String(response), /^HTTP\/1.1 408 /)
    assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
    clearInterval(sending)
    steady.write('0\r\n\r\n')
    const [response] = await once(steady, 'data')
    assert.match(String(response), /^HTTP\/1.1 200 /)
    steady.destroy()
  })

  test('a request counts as slow only after its 100 Continue, which a local server may send late', async () => {
    const { host, onStream } = await openRawTunnel(edge, key)
    const { promise: late, resolve: onContinue } = Promise.withResolvers<void>()
    onStream((stream) =>
      // Longer than a silent request and an idle connection are kept.
      setTimeout(() => {
        stream.write('HTTP/1.1 100 Continue\r\n\r\n')
        onContinue()
      }, 65_000),
    )
    const socket = connect(edge.port, '127.0.0.1')
    const received = collectText(socket)
    const closed = once(socket, 'close')
    socket.write(`POST / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n`)
    await late
    await closed
    assert.match(received(), /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 408 /)
  })

  test('in a tunnel that is more than half full, the minimum rate grows with the requests of a network', async (t) => {
    const { host } = await openOwnTunnel(t, edge, key)
    const upload = (client: string) => {
      const socket = connect(edge.port, '127.0.0.1')
      socket.on('error', () => {})
      socket.write(
        `POST / HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: ${client}\r\nTransfer-Encoding: chunked\r\n\r\n`,
      )
      return socket
    }
    const many = Array.from({ length: 250 }, () => upload('203.0.113.1'))
    const few = Array.from({ length: 10 }, (_, index) => upload(`198.51.100.${index}`))
    const sending = setInterval(() => {
      for (const socket of [...many, ...few])
        if (socket.writable) socket.write(`80\r\n${'x'.repeat(128)}\r\n`)
    }, 1_000)
    atEnd(t, () => {
      clearInterval(sending)
      for (const socket of [...many, ...few]) socket.destroy()
    })
    for (const [response] of await Promise.all(many.map((socket) => once(socket, 'data'))))
      assert.match(String(response), /^HTTP\/1.1 408 /)
    clearInterval(sending)
    for (const socket of few) socket.write('0\r\n\r\n')
    for (const [response] of await Promise.all(few.map((socket) => once(socket, 'data'))))
      assert.match(String(response), /^HTTP\/1.1 200 /)
  })

  test('a client at its limit leaves the rest of the tunnel to others', async (t) => {
    const { host } = await openOwnTunnel(t, edge, key)
    const silent = Array.from({ length: 260 }, () => postSilently(edge, host, '203.0.113.9'))
    await untilAccepted(edge)
    await until(
      'the client is limited',
      async () => (await fetchHost(edge, host, from('203.0.113.9'))).status === 429,
    )
    for (const client of ['203.0.113.8', '2001:db8::9', 'unknown', '203.0.113.9, 203.0.113.7'])
      assert.equal((await fetchHost(edge, host, from(client))).status, 200, client)
    // The last entry is the proxy's own, whatever the client sent.
    for (const client of ['198.51.100.1, 203.0.113.9', '203.0.113.9:4711', '::ffff:203.0.113.9'])
      assert.equal((await fetchHost(edge, host, from(client))).status, 429, client)
    const rejected = await fetchHost(edge, host, from('203.0.113.9'))
    assert.match(String(rejected.body), /Too many concurrent requests from your address/)
    for (const socket of silent) socket.destroy()
    await until(
      'it is admitted again',
      async () => (await fetchHost(edge, host, from('203.0.113.9'))).status === 200,
    )
  })

  test('clients that do not read their responses block no others', async (t) => {
    const { host, local } = await openOwnTunnel(t, edge, key)
    // Some of these sizes fill the downstream buffers of the edge and fit into the upstream ones.
    for (const megabytes of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const stalled = Array.from({ length: 6 }, () => connect(edge.port, '127.0.0.1').pause())
      const before = local.requests.length
      for (const socket of stalled)
        socket.write(`GET /bytes/${megabytes}000000 HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
      await until('all are handled', () => local.requests.length === before + stalled.length)
      await Promise.all(
        Array.from({ length: 6 }, async () => assert.equal((await fetchHost(edge, host)).status, 200)),
      )
      for (const socket of stalled) socket.destroy()
    }
  })

  test('IPv6 clients are limited per /64, including WebSockets', async (t) => {
    const { host } = await openOwnTunnel(t, edge, key)
    const sockets = await Promise.all(
      Array.from({ length: 250 }, (_, index) =>
        openSocket(edge, host, from(`2001:db8:1:2::${index.toString(16)}`)),
      ),
    )
    await assert.rejects(openSocket(edge, host, from('[2001:db8:1:2:ffff::1]:99')), /429/)
    assert.equal((await fetchHost(edge, host, from('2001:db8:1:3::1'))).status, 200)
    // Addresses may have a zone id.
    assert.equal((await fetchHost(edge, host, from('fe80::1%eth0'))).status, 200)
    for (const socket of sockets) socket.terminate()
    await until(
      'there is room again',
      async () => (await fetchHost(edge, host, from('2001:db8:1:2::1'))).status === 200,
    )
  })

  test('all networks of an IPv6 /48 together use at most three quarters of a tunnel', async (t) => {
    const { host } = await openOwnTunnel(t, edge, key)
    const sockets = await Promise.all(
      Array.from({ length: 375 }, (_, index) =>
        openSocket(edge, host, from(`2001:db8:1:${index.toString(16)}::1`)),
      ),
    )
    assert.equal((await fetchHost(edge, host, from('2001:db8:1:ffff::1'))).status, 429)
    for (const client of ['2001:db8:2::1', '203.0.113.9'])
      assert.equal((await fetchHost(edge, host, from(client))).status, 200, client)
    for (const socket of sockets) socket.terminate()
    await until(
      'there is room again',
      async () => (await fetchHost(edge, host, from('2001:db8:1:ffff::1'))).status === 200,
    )
  })

  test('by default private addresses are limited like all others', async (t) => {
    const { host } = await openOwnTunnel(t, edge, key)
    for (const address of ['10.0.0.7', '172.16.0.7', '192.168.0.7', 'fd00::7']) {
      const silent = Array.from({ length: 250 }, (_, index) =>
        postSilently(edge, host, `203.0.113.${index}, ${address}`),
      )
      await untilAccepted(edge)
      await until(
        'it is limited',
        async () => (await fetchHost(edge, host, from(`198.51.100.1, ${address}`))).status === 429,
      )
      for (const socket of silent) socket.destroy()
    }
  })

  test('the log has one warning about a trusted proxy without X-Forwarded-For, and one about an untrusted one', async (t) => {
    for (const [trusted, headers, warning] of [
      ['127.0.0.1', {}, /"proxy":"127\.0\.0\.1".*sends no X-Forwarded-For/g],
      ['192.0.2.1', from('203.0.113.9').headers, /"peer":"127\.0\.0\.1".*X-Forwarded-For ignored/g],
    ] as const) {
      const { edge, keys, local } = await startStandaloneEdge(t, ['acme'], {
        ADIT_EDGE_TRUSTED_PROXIES: trusted,
      })
      const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
      for (let round = 0; round < 3; round++) await fetchHost(edge, host, { headers })
      edge.child.kill('SIGTERM')
      const { stderr } = await edge.ended
      assert.equal(stderr.match(warning)?.length, 1, stderr)
    }
  })

  test('by default, requests from loopback without X-Forwarded-For are not logged as those of a proxy', async (t) => {
    const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
    const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
    assert.equal((await fetchHost(edge, host)).status, 200)
    edge.child.kill('SIGTERM')
    const { stderr } = await edge.ended
    assert.match(stderr, /"msg":"tunnel opened"/)
    assert.ok(!stderr.includes('X-Forwarded-For'), stderr)
  })

  test('X-Forwarded-For is used only from trusted proxies', async (t) => {
    const { edge, keys, local } = await startStandaloneEdge(t, ['acme'], {
      ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1, 2001:db8::/32',
    })
    const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
    const silent = Array.from({ length: 250 }, (_, index) => postSilently(edge, host, `203.0.113.${index}`))
    await untilAccepted(edge)
    await until(
      'it is limited',
      async () => (await fetchHost(edge, host, from('198.51.100.1'))).status === 429,
    )
    for (const socket of silent) socket.destroy()
  })

  test('a client has at most 500 connections; those of tunnels and trusted proxies do not count', async (t) => {
    const { edge, keys } = await startStandaloneEdge(t, ['acme'], { ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1' })
    const tunnels = await Promise.all(
      Array.from({ length: 20 }, () => openRawTunnel(edge, keys[0] as string)),
    )
    atEnd(t, () => {
      for (const { close } of tunnels) close()
    })
    const open = () => connect(edge.port, '127.0.0.1').on('error', () => {})
    const sockets = Array.from({ length: 490 }, open)
    await untilAccepted(edge)
    while (sockets.length < 500) {
      const socket = open()
      socket.write('GET /.adit/health HTTP/1.1\r\nHost: x\r\n\r\n')
      await once(socket, 'data')
      sockets.push(socket)
    }
    const extra = connect(edge.port, '127.0.0.1')
    extra.on('error', () => {})
    extra.resume()
    await once(extra, 'close')
    const [last] = sockets.slice(-1)
    last?.write('GET /.adit/health HTTP/1.1\r\nHost: x\r\n\r\n')
    const [response] = await once(last as NodeJS.EventEmitter, 'data')
    assert.match(String(response), /^HTTP\/1.1 200 /)
    for (const socket of sockets) socket.destroy()
    await until('there is room again', () =>
      fetchHost(edge, 'x', { path: '/.adit/health' }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    )
  })

  test('a workspace has at most 500 tunnel clients, and opens a limited number of tunnels per second', async (t) => {
    const { edge, keys } = await startStandaloneEdge(t, ['acme', 'other'])
    const [key = '', otherKey = ''] = keys
    const clients: RawTunnel[] = []
    atEnd(t, () => {
      for (const { close } of clients) close()
    })
    for (let batch = 0; batch < 10; batch++)
      clients.push(...(await Promise.all(Array.from({ length: 50 }, () => openRawTunnel(edge, key)))))
    await assert.rejects(openRawTunnel(edge, key), /limit of 500 tunnel clients/)
    clients.push(await openRawTunnel(edge, otherKey))
    clients.shift()?.close()
    await until('there is room again', () =>
      openRawTunnel(edge, key).then(
        (opened) => clients.push(opened) > 0,
        () => false,
      ),
    )
    // Openings that are rejected count, too.
    const requestStatus = async (key: string) =>
      (await sendRaw(edge.url, upgradeRequest(key, { type: 'tcp' }))).status
    const statuses = new Set<number>()
    for (let batch = 0; batch < 50 && !statuses.has(429); batch++)
      for (const status of await Promise.all(Array.from({ length: 50 }, () => requestStatus(key))))
        statuses.add(status)
    assert.deepEqual(statuses, new Set([403, 429]))
    assert.equal(await requestStatus(otherKey), 403)
  })

  test('informational responses to an upgrade are limited', async () => {
    const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n'
    for (const [count, expected] of [
      [10, 200],
      [1_000, 502],
    ] as const) {
      const { host, respond } = await openRawTunnel(edge, key)
      respond(`${hints.repeat(count)}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`)
      const socket = connect(edge.port, '127.0.0.1')
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`)
      const [response] = await once(socket, 'data')
      assert.match(String(response), new RegExp(`^HTTP/1.1 ${expected} `))
      socket.destroy()
    }
  })
})
