// Edges of a control plane as processes, which forward to each other. Each can be cut off from the control
// plane, and has a loopback address of its own for TCP tunnels.
import type { Test } from '../cleanup.ts'
import { startRelay } from '../network/relay.ts'
import { freePort } from '../processes/ports.ts'
import { type Plane, startTunnelEdge } from './tunnels.ts'

export type ClusterEdge = Awaited<ReturnType<typeof startClusterEdge>>

let addresses = 10

interface ClusterEdgeOptions {
  group?: string
  /** At which tunnel clients of other edges find it. */
  url?: string
  env?: Record<string, string>
  /** The limit of open files; undefined for the one of this process. */
  descriptors?: number
}

export async function startClusterEdge(
  t: Test,
  plane: Plane,
  name: string,
  { group = 'default', url, env = {}, descriptors }: ClusterEdgeOptions = {},
) {
  const relay = await startRelay(t, plane.url)
  const named = url === undefined ? [] : ['--url', url]
  addresses += 1
  const [tcpHost, metricsPort] = [`127.0.0.${addresses}`, await freePort()]
  const edge = await startTunnelEdge(t, {
    descriptors,
    env: {
      ADIT_URL: relay.url,
      ADIT_EDGE_KEY: await plane.admin('edge', 'create', name, '--group', group, ...named),
      ADIT_EDGE_PEER_PORT: String(await freePort()),
      ADIT_EDGE_TCP_HOST: tcpHost,
      ADIT_METRICS_PORT: String(metricsPort),
      ...env,
    },
  })
  return { ...edge, name, relay, tcpHost, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics` }
}
