// Connections to the ports of TCP tunnels count like those to the edge.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { atEnd } from '../../support/cleanup.ts'
import { openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { freePorts } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

const PER_CLIENT = 500
/** Fewer than a tunnel allows one address. */
const PER_TUNNEL = 200
const OTHER_CLIENT = '127.0.0.2'

test('a client has at most 500 connections to all TCP tunnels of an edge, and other clients get in', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'], {
    ADIT_EDGE_TCP_PORTS: (await freePorts(8)).range,
    // Loopback addresses are clients like others.
    ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1',
  })
  const ports: number[] = []
  for (const name of ['db', 'cache', 'queue']) {
    const tunnel = await openRawTunnel(edge, keys[0] as string, { type: 'tcp', name })
    atEnd(t, () => tunnel.close())
    tunnel.onStream((stream) => {
      stream.resume().write('welcome')
      stream.once('end', () => stream.end())
    })
    ports.push(Number(new URL(tunnel.url).port))
  }
  const sockets: Socket[] = []
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy()
  })
  /** Whether the connection reaches the local server. */
  const isAdmitted = (port: number, localAddress = '127.0.0.1') => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    sockets.push(socket.on('error', () => {}))
    return new Promise<boolean>((resolve) => {
      socket.once('data', () => resolve(true)).once('close', () => resolve(false))
    })
  }
  const admitted = await Promise.all(
    ports.flatMap((port) => Array.from({ length: PER_TUNNEL }, () => isAdmitted(port))),
  )
  assert.equal(admitted.filter(Boolean).length, PER_CLIENT)
  await edge.waitFor(/"client":"127\.0\.0\.1".*connections of a client rejected/, 'stderr')
  await assert.rejects(fetchHost(edge, 'x', { path: '/.adit/health' }), 'it cannot connect elsewhere either')
  for (const port of ports) assert.equal(await isAdmitted(port, OTHER_CLIENT), true)
  for (const socket of sockets) socket.destroy()
  await until('there is room again', () => isAdmitted(ports[0] as number))
})
