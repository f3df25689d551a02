// One of two edges that forward to each other, without a control plane: the benchmark says where the tunnel
// is.
import { startEdge } from '../../src/edge/start.ts'
import { type Cluster, openTokensFile } from '../../src/edge-sdk/index.ts'

interface Settings {
  readonly file: string
  readonly host: string
  readonly peerPort: number
  readonly isEntry: boolean
  /** The port of the other edge. */
  readonly otherPort: number
}

const { file, host, peerPort, isEntry, otherPort } = JSON.parse(process.argv[2] as string) as Settings
const [edgeId, other] = isEntry ? ['entry', 'serving'] : ['serving', 'entry']
const secrets = [Buffer.alloc(32, 'only for the bench')]
const cluster: Cluster = {
  edgeId,
  findEdges: (name) => (isEntry && name === host ? [other] : []),
  peer: (id) => (id === other ? { id, address: `127.0.0.1:${otherPort}`, secrets } : undefined),
  onPeers() {},
  onLocations() {},
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
  peerListener: { host: '127.0.0.1', port: peerPort },
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
