// `openTunnel`, the tunnel client as a library, against a real control plane and edge.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { type OpenTunnelOptions, openTunnel, TunnelError } from '../../src/tunnel/index.ts'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { startMinimalEdge } from '../support/edges/minimal-edge.ts'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { fetchHost, newKey, startLocal, startPlane, startTunnelEdge } from '../support/edges/tunnels.ts'
import { freePort } from '../support/processes/ports.ts'
import { makeCertificate } from '../support/proxies/certificates.ts'
import { startTinyproxy, tinyproxy } from '../support/proxies/tinyproxy.ts'

test('a program opens a tunnel, gets its requests as events, and closes it', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const edge = await startTunnelEdge(t, { plane })
  const [{ id }] = JSON.parse(await plane.admin('edge', 'list', '--json'))
  await plane.admin('edge', 'set-url', id, edge.url)
  const { port } = await startLocal(t)
  const apiKey = await newKey(plane, 'acme')
  const basicAuth = { user: 'ann', password: 'correct-horse' }
  let host = ''
  {
    await using tunnel = await openTunnel({ url: plane.url, apiKey, target: port, name: 'app', basicAuth })
    host = tunnel.host
    assert.deepEqual([tunnel.name, tunnel.url], ['app', `http://${host}:${edge.port}`])
    assert.equal((await fetchHost(edge, host, { path: '/' })).status, 401)
    const requested = once(tunnel, 'request')
    const authorization = `Basic ${btoa('ann:correct-horse')}`
    assert.equal((await fetchHost(edge, host, { path: '/a', headers: { authorization } })).status, 200)
    const [{ method, path, status }] = await requested
    assert.deepEqual([method, path, status], ['GET', '/a', 200])
    await assert.rejects(
      openTunnel({ edge: edge.url, apiKey, target: port, name: 'app' }),
      (error: TunnelError) => {
        assert.ok(error instanceof TunnelError && error.code === 'name_taken', error.code)
        return true
      },
    )
  }
  assert.equal((await fetchHost(edge, host, { path: '/' })).status, 404, 'closed at the end of the block')

  if (tinyproxy) {
    const proxy = await startTinyproxy(t, 'BasicAuth ann s3cret')
    const behind = {
      url: plane.url,
      apiKey,
      target: port,
      proxy: `http://ann:s3cret@127.0.0.1:${proxy.port}`,
    }
    await using tunnel = await openTunnel(behind)
    assert.equal((await fetchHost(edge, tunnel.host, { path: '/' })).status, 200)
    assert.deepEqual(proxy.requests(), [
      `GET ${plane.url}/workspace/v1/edge`,
      `CONNECT ${new URL(edge.url).host}`,
    ])
    const wrong = { ...behind, edge: edge.url, proxy: `http://127.0.0.1:${proxy.port}` }
    await assert.rejects(openTunnel(wrong), {
      code: 'proxy_rejected',
      message: /\(proxy\) rejected .* 40[17]/,
    })
  }

  const revocable = await openTunnel({ url: plane.url, apiKey, target: port })
  const closed = once(revocable, 'close')
  const [key] = JSON.parse(await plane.admin('key', 'list', '--workspace', 'acme', '--json'))
  await plane.admin('key', 'revoke', key.id, '--yes')
  const [error] = await closed
  assert.equal((error as TunnelError).code, 'unauthorized')
  await revocable.close()
})

test('a target may speak TLS, verified by ca or not at all, or be a Unix socket', async (t) => {
  const certificate = makeCertificate(t, 'DNS:localhost')
  if (!certificate) return t.skip('openssl is not installed')
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const ca = readFileSync(certificate.certificate, 'utf8')
  const secure = createHttps({ key: readFileSync(certificate.key), cert: ca }, (_, response) =>
    response.end(),
  )
  const plain = createHttp((_, response) => response.end())
  const path = join(createFolder(t), 'app.sock')
  atEnd(t, () => [secure, plain].map((server) => server.close()))
  await Promise.all([once(secure.listen(0), 'listening'), once(plain.listen(path), 'listening')])
  const https = `https://localhost:${(secure.address() as AddressInfo).port}`
  for (const [options, status] of [
    [{ target: https, ca }, 200],
    [{ target: https, insecure: true }, 200],
    [{ target: `unix:${path}` }, 200],
    [{ target: https }, 502],
  ] as const) {
    await using tunnel = await openTunnel({ edge: edge.url, apiKey: keys[0] ?? '', ...options })
    const unreachable = once(tunnel, 'unreachable')
    assert.equal((await fetchHost(edge, tunnel.host, { path: '/' })).status, status)
    if (status === 502) assert.match((await unreachable)[0], /localhost:\d+ cannot .*self-signed certificate/)
  }
})

test('a tunnel reconnects, and an opening that fails rejects', async (t) => {
  const edge = await startMinimalEdge(t)
  const options = { edge: edge.url, apiKey: 'adit_key', target: 3000 }
  const closing = new AbortController()
  const tunnel = await openTunnel({ ...options, signal: closing.signal })
  const [lost, reconnected] = [once(tunnel, 'lost'), once(tunnel, 'reconnected')]
  const side = await edge.connection()
  side.socket.destroy()
  assert.match((await lost)[0], /edge/)
  await reconnected
  const closed = once(tunnel, 'close')
  closing.abort()
  ;(await edge.connection(1)).session.goAway()
  assert.deepEqual(await closed, [undefined])
  const nobody = `http://127.0.0.1:${await freePort()}`
  await assert.rejects(openTunnel({ ...options, edge: nobody }), { name: 'TunnelError', code: 'unreachable' })
  await assert.rejects(openTunnel({ ...options, signal: AbortSignal.abort() }), { name: 'AbortError' })
  for (const [invalid, message] of [
    [{ target: 0 }, /Invalid port/],
    [{ target: 'ftp://localhost:21' }, /Invalid target/],
    [{ insecure: true }, /insecure and ca are for targets with https/],
    [{ target: 'https://localhost:1', ca: 'x' }, /Invalid ca/],
    [{ target: 'https://localhost:1', ca: 'x', insecure: true }, /Use one of them/],
    [{ hostHeader: 'a\r\nb' }, /Invalid hostHeader/],
    [{ allowIp: ['x'] }, /Invalid address or network "x"/],
    [{ proxy: 'socks5://u:secret@proxy' }, /^Error: proxy must be the URL of an HTTP proxy(?!.*secret)/],
    [{ edge: undefined }, /Missing url \(of the server\) or edge/],
  ] as [Partial<OpenTunnelOptions>, RegExp][])
    await assert.rejects(openTunnel({ ...options, ...invalid } as OpenTunnelOptions), message)
})
