// An edge that reports sample tunnels through the edge API, and closes those that it is asked to close.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReportedTunnel } from '../../../src/contract/edge/tunnel-fields.ts'
import type { TestServer } from '../api/server.ts'
import { atEnd, type Test } from '../cleanup.ts'
import { addTunnelEdge, tunnelOf } from './open-tunnels.ts'

const SYNC_INTERVAL_MS = 200

/** Settings of a server for sample tunnels: some of them are TCP tunnels. */
export const tcpSettings = { ADIT_TCP_PORTS: '20000-20999', ADIT_TCP_PORTS_PER_WORKSPACE: '1000' }

/** Tunnels of different types, clients and loads. `index` is part of the name. */
export const sampleTunnel = (server: TestServer, index: number): ReportedTunnel => {
  const isTcp = index % 5 === 3
  const name = `${['web', 'api', 'preview', 'ssh', 'docs'][index % 5]}-${index}`
  const host = `${name}.${server.workspace.slug}.${server.services.tunnelDomain}`
  return tunnelOf(server, {
    name,
    type: isTcp ? 'tcp' : 'http',
    url: isTcp ? `tcp://${host}:${20_000 + index}` : `https://${host}`,
    pool: index % 7 === 4,
    clientAddress: index % 3 === 0 ? '2001:db8:85a3:8d3:1319:8a2e:370:7348' : `192.0.2.${index % 250}`,
    openedAt: new Date(Date.now() - index * 400_000).toISOString(),
    requests: (index * 7919) % 100_003,
    bytesIn: (index * 104_729) % 50_000_017,
    bytesOut: (index * 15_485_863) % 9_000_000_011,
    streams: index % 4,
    ...(index % 4 === 1 && { access: { basicAuth: true, allowIp: ['192.0.2.0/24', '2001:db8::/32'] } }),
  })
}

export async function simulateEdge(t: Test, server: TestServer, name: string, tunnels: ReportedTunnel[]) {
  const edge = await addTunnelEdge(server, name)
  const closing = new Set<string>()
  const pending: ReportedTunnel[] = []
  let isStopped = false
  const sync = async (changed: ReportedTunnel[] = []) => {
    const closed = [...closing]
    const { close } = await edge.sync({ changed, closed })
    for (const id of closed) closing.delete(id)
    for (const { id } of close) closing.add(id)
  }
  await sync(tunnels)
  const running = (async () => {
    while (!isStopped) {
      await sync(pending.splice(0))
      await sleep(SYNC_INTERVAL_MS)
    }
  })()
  const stop = () => {
    isStopped = true
    return running
  }
  atEnd(t, stop)
  return {
    id: edge.id,
    /** With the next sync. */
    report: (tunnel: ReportedTunnel) => pending.push(tunnel),
    stop,
  }
}
