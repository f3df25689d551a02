// Edges on IPv6. On `::`, an IPv4 client has a mapped address, and is still one client.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { atEnd } from '../../support/cleanup.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost, openTunnel, untilAccepted } from '../../support/edges/tunnels.ts'
import { ipv6Missing, MAPPED } from '../../support/network/ipv6.ts'
import { freePorts } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

/** Loopback addresses are clients like others. */
const dualStack = { ADIT_EDGE_HOST: '::', ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1' }
const ADDRESSES = ['127.0.0.1', MAPPED, '::1']

suite('edge on IPv6', { skip: ipv6Missing }, () => {
  test('it listens on ::1, and on :: for IPv4 as well, for tunnel clients and requests', async (t) => {
    for (const [listening, addresses] of [
      ['::1', ['::1']],
      ['::', ADDRESSES],
    ] as const) {
      const { edge, keys, local } = await startStandaloneEdge(t, ['acme'], {
        ...dualStack,
        ADIT_EDGE_HOST: listening,
      })
      assert.equal(edge.url, `http://${listening === '::' ? '127.0.0.1' : '[::1]'}:${edge.port}`)
      for (const address of addresses) {
        const url = `http://${address.includes(':') ? `[${address}]` : address}:${edge.port}`
        const options = { key: keys[0] as string, port: local.port, name: 'app' }
        const tunnel = await openTunnel(t, { edge: { url }, ...options })
        const { status, body } = await fetchHost(edge, tunnel.host, { address })
        assert.equal(status, 200, address)
        const forwarded = address === '::1' ? '::1' : '127.0.0.1'
        assert.equal(JSON.parse(String(body)).headers['x-forwarded-for'], forwarded)
        tunnel.child.kill('SIGTERM')
        await tunnel.ended
      }
    }
  })

  test('--allow-ip means the same for IPv4 clients and their mapped addresses', async (t) => {
    const { first, range } = await freePorts(8)
    const { edge, keys } = await startStandaloneEdge(t, ['acme'], {
      ...dualStack,
      ADIT_EDGE_TCP_PORTS: range,
    })
    const cases: [allowIp: string, admitted: string[]][] = [
      ['127.0.0.1', ['127.0.0.1', MAPPED]],
      [MAPPED, ['127.0.0.1', MAPPED]],
      ['::ffff:127.0.0.0/104', ['127.0.0.1', MAPPED]],
      ['::1', ['::1']],
      ['::/0', ['::1']],
      ['203.0.113.1', []],
    ]
    for (const [index, [allowIp, admitted]] of cases.entries()) {
      const access = { allowIp: [allowIp] }
      const http = await openRawTunnel(edge, keys[0] as string, { name: `http-${index}`, access })
      http.respond('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      const tcp = await openRawTunnel(edge, keys[0] as string, { type: 'tcp', name: `tcp-${index}`, access })
      const port = Number(new URL(tcp.url).port)
      assert.ok(port >= first)
      for (const address of ADDRESSES) {
        const isAdmitted = admitted.includes(address)
        const { status } = await fetchHost(edge, http.host, { address })
        assert.equal(status, isAdmitted ? 200 : 403, `${allowIp}: ${address}`)
        const before = tcp.streams().length
        const socket = connect(port, address).on('error', () => {})
        socket.resume().write('hello')
        await until(
          'the connection is closed or arrives',
          () => socket.destroyed || tcp.streams().length > before,
        )
        socket.destroy()
        assert.equal(tcp.streams().length - before, isAdmitted ? 1 : 0, `${allowIp}: TCP from ${address}`)
      }
      http.close()
      tcp.close()
    }
  })

  test('an IPv4 client has one budget, however it connects to ::', async (t) => {
    const { edge, keys, local } = await startStandaloneEdge(t, ['acme'], dualStack)
    const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
    const sockets: Socket[] = []
    const open = (index: number) => {
      const socket = connect(edge.port, index % 2 ? MAPPED : '127.0.0.1').on('error', () => {})
      sockets.push(socket)
      return socket
    }
    atEnd(t, () => {
      for (const socket of sockets) socket.destroy()
    })
    for (let index = 0; index < 260; index++)
      open(index).write(`POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 9\r\n\r\n`)
    await untilAccepted(edge)
    for (const address of ['127.0.0.1', MAPPED])
      assert.equal((await fetchHost(edge, host, { address })).status, 429, address)
    assert.equal((await fetchHost(edge, host, { address: '::1' })).status, 200)
    // The limit of connections is 500.
    for (let index = 0; index < 260; index++) open(index).resume()
    await until('some are closed', () => sockets.some(({ destroyed }) => destroyed))
    for (const address of ['127.0.0.1', MAPPED]) await assert.rejects(fetchHost(edge, host, { address }))
    assert.equal((await fetchHost(edge, host, { address: '::1' })).status, 200)
  })

  test('a trusted IPv6 network includes no IPv4 client, and a mapped address is the IPv4 client', async (t) => {
    for (const [trusted, proxies] of [
      ['::1/64', ['::1']],
      [MAPPED, ['127.0.0.1', MAPPED]],
    ] as const) {
      const { edge, keys, local } = await startStandaloneEdge(t, ['acme'], {
        ADIT_EDGE_HOST: '::',
        ADIT_EDGE_TRUSTED_PROXIES: trusted,
      })
      const flags = ['--allow-ip', '203.0.113.1']
      const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, flags })
      for (const address of ADDRESSES) {
        const headers = { 'x-forwarded-for': '203.0.113.1' }
        const { status } = await fetchHost(edge, host, { address, headers })
        assert.equal(status, (proxies as readonly string[]).includes(address) ? 200 : 403, address)
      }
    }
  })
})
