// One of several edges that forward to each other, without a control plane: the benchmark says where the
// tunnel is.
import { startEdge } from '../../src/edge/start.ts'
import { type Cluster, openTokensFile } from '../../src/edge-sdk/index.ts'

interface Settings {
  readonly file: string
  readonly host: string
  readonly edgeId: string
  /** The ports of all edges for each other, by their ids. */
  readonly ports: Readonly<Record<string, number>>
  /** The edges with a client of the tunnel. */
  readonly servingIds: readonly string[]
}

const { file, host, edgeId, ports, servingIds } = JSON.parse(process.argv[2] as string) as Settings
const secrets = [Buffer.alloc(32, 'only for the bench')]
const cluster: Cluster = {
  edgeId,
  isComplete: true,
  tcpPort: () => undefined,
  tcpHosts: () => [],
  findEdges: (name) => (name === host ? servingIds.filter((id) => id !== edgeId) : []),
  peer: (id) => (ports[id] ? { id, address: `127.0.0.1:${ports[id]}`, secrets } : undefined),
  onPeers() {},
  onLocations() {},
  onRevoked() {},
}
const ignore = () => {}
const { url } = await startEdge({
  host: '127.0.0.1',
  port: 0,
  publicEndpoint: undefined,
  tcpHost: '127.0.0.1',
  certificatesPerDay: 1,
  certificatesTotalPerDay: 1,
  trustedProxies: [],
  localPorts: undefined,
  meter: undefined,
  startReporter: undefined,
  peerListener: { host: '127.0.0.1', port: ports[edgeId] as number },
  startVerifier: (on) => ({ ...openTokensFile(file, { tunnelDomain: 'localhost', ...on }), cluster }),
  onOpened: ignore,
  onClosed: ignore,
  onWrongPassword: ignore,
  onPortUnavailable: ignore,
  onConnectionsLimited: ignore,
  onCertificatesLimited: ignore,
  onUnnamedClient: ignore,
  onIgnoredProxy: ignore,
})
process.once('disconnect', () => process.exit())
process.send?.({ port: Number(new URL(url).port) })
