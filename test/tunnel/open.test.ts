// `openTunnel`, the tunnel client as a library, against a real control plane and edge.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { type OpenTunnelOptions, openTunnel, TunnelError } from '../../src/tunnel/index.ts'
import { startMinimalEdge } from '../support/edges/minimal-edge.ts'
import { fetchHost, newKey, startLocal, startPlane, startTunnelEdge } from '../support/edges/tunnels.ts'
import { freePort } from '../support/processes/ports.ts'

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
    await using tunnel = await openTunnel({ url: plane.url, apiKey, port, name: 'app', basicAuth })
    host = tunnel.host
    assert.deepEqual([tunnel.name, tunnel.url], ['app', `http://${host}:${edge.port}`])
    assert.equal((await fetchHost(edge, host, { path: '/' })).status, 401)
    const requested = once(tunnel, 'request')
    const authorization = `Basic ${btoa('ann:correct-horse')}`
    assert.equal((await fetchHost(edge, host, { path: '/a', headers: { authorization } })).status, 200)
    const [{ method, path, status }] = await requested
    assert.deepEqual([method, path, status], ['GET', '/a', 200])
    await assert.rejects(openTunnel({ edge: edge.url, apiKey, port, name: 'app' }), (error: TunnelError) => {
      assert.ok(error instanceof TunnelError && error.code === 'name_taken', error.code)
      return true
    })
  }
  assert.equal((await fetchHost(edge, host, { path: '/' })).status, 404, 'closed at the end of the block')

  const revocable = await openTunnel({ url: plane.url, apiKey, port })
  const closed = once(revocable, 'close')
  const [key] = JSON.parse(await plane.admin('key', 'list', '--workspace', 'acme', '--json'))
  await plane.admin('key', 'revoke', key.id, '--yes')
  const [error] = await closed
  assert.equal((error as TunnelError).code, 'unauthorized')
  await revocable.close()
})

test('a tunnel reconnects, and an opening that fails rejects', async (t) => {
  const edge = await startMinimalEdge(t)
  const options = { edge: edge.url, apiKey: 'adit_key', port: 3000 }
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
    [{ port: 0 }, /Invalid port/],
    [{ host: 'a b' }, /Invalid host/],
    [{ hostHeader: 'a\r\nb' }, /Invalid hostHeader/],
    [{ allowIp: ['x'] }, /Invalid address or network "x"/],
    [{ edge: undefined }, /Missing url of the server, or edge/],
  ] as [Partial<OpenTunnelOptions>, RegExp][])
    await assert.rejects(openTunnel({ ...options, ...invalid } as OpenTunnelOptions), message)
})
