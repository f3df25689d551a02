// WebSockets through nginx and HAProxy in front of an edge, with the configurations from the documentation.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, suite, test } from 'node:test'
import { WebSocket } from 'ws'
import type { Test } from '../../support/cleanup.ts'
import { openOwnTunnel, openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { connectRaw } from '../../support/network/raw.ts'
import { freePort } from '../../support/processes/ports.ts'
import { haproxy, startHaproxy } from '../../support/proxies/haproxy.ts'
import { nginx, startNginx } from '../../support/proxies/nginx.ts'
import { until } from '../../support/until.ts'

/** A loopback address that neither the proxy nor the edge uses; Linux has all of them. */
const CLIENT = process.platform === 'linux' ? '127.0.0.5' : '127.0.0.1'

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'], { ADIT_EDGE_PUBLIC: 'https' })
const [key = ''] = keys

/** Without TLS. Connections to the edge are kept open, and nobody may request /forbidden. */
const proxies = {
  nginx: {
    isInstalled: nginx !== undefined,
    start: (t: Test, port: number) =>
      startNginx(t, port, 'docs/edges/adit-edge.nginx.conf', {
        'listen 443 ssl;': `listen 127.0.0.1:${port} default_server; location /forbidden { return 403; }`,
        'ssl_certificate     /etc/ssl/tunnels.example.com.pem;': '',
        'ssl_certificate_key /etc/ssl/tunnels.example.com.key;': '',
        '  server {': `  upstream edge { server 127.0.0.1:${edge.port}; keepalive 4; }\n  server {`,
        'http://127.0.0.1:8081': 'http://edge',
      }),
  },
  HAProxy: {
    isInstalled: haproxy !== undefined,
    start: (t: Test, port: number) =>
      startHaproxy(t, port, 'docs/edges/adit-edge.haproxy.cfg', {
        'bind :443 ssl crt /etc/ssl/tunnels.example.com.pem alpn http/1.1': `bind 127.0.0.1:${port}`,
        'default_backend edge':
          'http-request deny deny_status 403 if { path_beg /forbidden }\n  default_backend edge',
        'backend edge\n  server': 'backend edge\n  http-reuse always\n  server',
        '127.0.0.1:8081': `127.0.0.1:${edge.port}`,
      }),
  },
}

const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
const body = (status: string, headers = '') => `HTTP/1.1 ${status}\r\n${headers}Content-Length: 2\r\n\r\nno`

/** How a local server declines an upgrade, and what the client gets. */
const declines: [response: string, status: number][] = [
  [body('200 OK'), 200],
  [body('400 Bad Request', 'Connection: close\r\n'), 400],
  [body('426 Upgrade Required', 'Connection: Upgrade\r\nUpgrade: websocket\r\n'), 426],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n', 200],
  ['HTTP/1.1 204 No Content\r\n\r\n', 204],
]

for (const [name, { isInstalled, start }] of Object.entries(proxies))
  suite(`WebSockets through ${name}`, { skip: !isInstalled && `${name} is not installed here` }, async () => {
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    if (isInstalled) await start({ after }, port)

    test(`${name}: a response arrives after an informational one`, async () => {
      const { host, respond } = await openRawTunnel(edge, key)
      respond(`HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n${body('200 OK')}`)
      const client = connectRaw(url)
      client.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
      const hints = name === 'nginx' ? '' : 'HTTP/1.1 103 Early Hints\r\n(?:.+\r\n)+\r\n'
      assert.match(await client.response, new RegExp(`^${hints}HTTP/1.1 200 OK\r\n`))
    })

    test(`${name}: heads of 60 KB pass in both directions`, async () => {
      const { host, respond, requests } = await openRawTunnel(edge, key)
      respond(body('200 OK', `X-Large: ${'x'.repeat(60_000)}\r\n`))
      const client = connectRaw(url)
      client.write(
        `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nCookie: ${'y'.repeat(60_000)}\r\n\r\n`,
      )
      assert.match(await client.response, /^HTTP\/1\.1 200 OK\r\n[\s\S]*X-Large: x{60000}\r\n/i)
      assert.equal(requests().length, 1)
    })

    test(`${name}: messages arrive in both directions, and the local server sees address and protocol`, async (t) => {
      const { host, local } = await openOwnTunnel(t, edge, key)
      const forged = { 'x-forwarded-for': '203.0.113.1', 'x-forwarded-proto': 'ftp' }
      const upgraded = once(local.server, 'upgrade')
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`, {
        headers: { host, ...forged },
        localAddress: CLIENT,
      })
      await once(socket, 'open')
      const [{ headers }] = await upgraded
      assert.equal(headers['x-forwarded-for'], `${CLIENT}, 127.0.0.1`)
      assert.equal(headers['x-forwarded-proto'], 'https')
      assert.equal(headers.host, host)
      for (const size of [0, 1, 70_000, 1_000_000]) {
        socket.send(Buffer.alloc(size, 'w'))
        const [back] = await once(socket, 'message')
        assert.ok(back.equals(Buffer.alloc(size, 'w')), String(size))
      }
      socket.close()
      await once(socket, 'close')
    })

    test(`${name}: bytes after a declined upgrade are no request that the proxy has not seen`, async (t) => {
      const tunnel = await openRawTunnel(edge, key)
      t.after(() => tunnel.close())
      let received = ''
      let declined = ''
      tunnel.onStream((stream) =>
        stream.on('data', (chunk) => {
          received += chunk
          const [, path = ''] = /^GET (\S+) /.exec(String(chunk)) ?? []
          stream.write(path === '/upgrade' ? declined : body(`200 OK`, `X-Path: ${path}\r\n`))
        }),
      )
      const through = (path: string) => fetchHost({ port }, tunnel.host, { path })
      const smuggled = `GET /forbidden HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`
      assert.equal((await through('/forbidden')).status, 403)
      for (const [response, status] of declines)
        for (const isTogether of [true, false]) {
          declined = response
          const client = connectRaw(url)
          const upgrade = `GET /upgrade HTTP/1.1\r\nHost: ${tunnel.host}\r\n${HANDSHAKE}\r\n`
          client.write(isTogether ? upgrade + smuggled : upgrade)
          await client.receives(`HTTP/1.1 ${status} `)
          if (!isTogether) client.write(smuggled)
          const next = await through('/next')
          assert.deepEqual([next.status, next.headers['x-path']], [200, '/next'], response)
          client.close()
          await client.response
        }
      assert.equal(received.match(/GET \/upgrade /g)?.length, declines.length * 2)
      assert.ok(!received.includes('/forbidden'), received)
      // The local server would have got it.
      await fetchHost(edge, tunnel.host, { path: '/forbidden' })
      await until('it arrives', () => received.includes('GET /forbidden '))
    })

    test(`${name}: bytes after an upgrade that the edge declines are no request either`, async (t) => {
      const { host, local } = await openOwnTunnel(t, edge, key)
      const smuggled = `GET /forbidden HTTP/1.1\r\nHost: ${host}\r\n\r\n`
      const requests = {
        'to h2c': `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
        'to an unknown tunnel': `GET / HTTP/1.1\r\nHost: nothing.tunnels.test\r\n${HANDSHAKE}\r\n`,
        'of a tunnel client without a key': `GET /.adit/connect HTTP/1.1\r\nHost: x\r\n${HANDSHAKE}\r\n`,
        'with a body': `POST / HTTP/1.1\r\nHost: ${host}\r\n${HANDSHAKE}Content-Length: 2\r\n\r\nhi`,
      }
      for (const [what, request] of Object.entries(requests)) {
        const client = connectRaw(url)
        client.write(request + smuggled)
        await client.receives('HTTP/1.1 ')
        client.write(smuggled)
        assert.equal((await fetchHost({ port }, host)).status, 200, what)
        client.close()
        await client.response
      }
      assert.deepEqual([...new Set(local.requests.map((request) => request.url))], ['/'])
    })
  })
