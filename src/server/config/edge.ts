// Settings of `adit edge`. The command reads them, and passes the values to the edge.

import { resolve } from 'node:path'
import { EDGE_PORT } from '../../lib/net/edge-port.ts'
import { defaultPath } from './data-folder.ts'
import { readMetricsAddress, readPortRules, settings } from './server.ts'
import { createReader, type Read, requireValid, setting } from './setting.ts'
import { integer, readNetworks, readPortRange, readPublicEndpoint, readWorkers } from './values.ts'

export const edgeSettings = {
  ADIT_EDGE_HOST: setting('address to listen on', '127.0.0.1', (text) => text),
  ADIT_EDGE_PORT: setting('port to listen on; 0 picks a free one', String(EDGE_PORT), integer(0, 65_535)),
  ADIT_EDGE_WORKERS: setting('processes of the edge; auto: one for each CPU', '1', readWorkers),
  ADIT_EDGE_PUBLIC: setting(
    'public scheme and port if a proxy is in front: https, or e.g. https:8443',
    '',
    readPublicEndpoint,
  ),
  ADIT_EDGE_TRUSTED_PROXIES: setting(
    'comma-separated addresses or networks of proxies whose X-Forwarded-For is trusted',
    '127.0.0.0/8,::1',
    readNetworks,
  ),
  ADIT_EDGE_STOP_DELAY: setting(
    'seconds to keep serving after SIGTERM while /.adit/ready already returns 503',
    '0',
    integer(0, 300),
  ),
  ADIT_EDGE_FOLDER: setting(
    'folder for unreported usage and assigned TCP ports, which edges must not share; empty for `edge` in the data folder',
    '',
    (text, environment) => (text === '' ? defaultPath('edge', environment) : resolve(text)),
  ),
  ADIT_EDGE_CERTIFICATES_PER_DAY: setting(
    'new certificates for hosts of a workspace in 24 hours, if a proxy obtains them',
    '500',
    integer(1, 100_000),
  ),
  ADIT_EDGE_CERTIFICATES_TOTAL_PER_DAY: setting(
    'new certificates for hosts of all workspaces in 24 hours; one workspace gets at most a quarter of what is left',
    '2500',
    integer(1, 1_000_000),
  ),
  ADIT_EDGE_TCP_PORTS: setting(
    'ports of TCP tunnels of an edge with a tokens file, e.g. 20000-20999; empty for none',
    '',
    readPortRange,
  ),
  ADIT_EDGE_TCP_HOST: setting(
    'address to listen on for TCP tunnels; empty for that of ADIT_EDGE_HOST',
    '',
    (text) => text,
  ),
  ADIT_EDGE_PEER_PORT: setting(
    'port to listen on for other edges of the group, to forward requests between edges; empty for none',
    '',
    (text) => (text === '' ? undefined : integer(1, 65_535)(text)),
  ),
  ADIT_EDGE_PEER_HOST: setting(
    'address to listen on for other edges; empty for that of ADIT_EDGE_HOST',
    '',
    (text) => text,
  ),
  ADIT_EDGE_PEER_ADDRESS: setting(
    'host and port at which other edges reach ADIT_EDGE_PEER_PORT; empty for the address it listens on',
    '',
    readPeerAddress,
  ),
}

function readPeerAddress(text: string): string {
  const url = URL.parse(`tcp://${text}`)
  if (text !== '' && (url?.host !== text || !(Number(url.port) > 0)))
    throw new Error('must be a host and a port, e.g. 10.0.0.7:8446')
  return text
}

export type EdgeConfig = ReturnType<typeof parseEdgeConfig>['config']

export const readEdgeConfig = (environment: NodeJS.ProcessEnv = process.env): EdgeConfig =>
  requireValid(parseEdgeConfig(environment))

export function parseEdgeConfig(environment: NodeJS.ProcessEnv = process.env) {
  const { read, errors } = createReader(environment, { ...settings, ...edgeSettings })
  const config = {
    host: read('ADIT_EDGE_HOST'),
    port: read('ADIT_EDGE_PORT'),
    workers: read('ADIT_EDGE_WORKERS'),
    publicEndpoint: read('ADIT_EDGE_PUBLIC'),
    trustedProxies: read('ADIT_EDGE_TRUSTED_PROXIES'),
    /**
     * Whether the operator has named proxies. One that sends no X-Forwarded-For then causes a warning; with
     * the default, loopback, there may be no proxy.
     */
    expectsProxy: Boolean(environment.ADIT_EDGE_TRUSTED_PROXIES?.trim()),
    stopDelayS: read('ADIT_EDGE_STOP_DELAY'),
    folder: read('ADIT_EDGE_FOLDER'),
    certificatesPerDay: read('ADIT_EDGE_CERTIFICATES_PER_DAY'),
    certificatesTotalPerDay: read('ADIT_EDGE_CERTIFICATES_TOTAL_PER_DAY'),
    tcpPorts: {
      range: read('ADIT_EDGE_TCP_PORTS'),
      ...readPortRules(read),
    },
    tcpHost: read('ADIT_EDGE_TCP_HOST'),
    peerListener: readPeerListener(read, errors),
    tunnelDomain: read('ADIT_TUNNEL_DOMAIN'),
    metrics: readMetricsAddress(read),
    logLevel: read('ADIT_LOG_LEVEL'),
    controlPlaneUrl: environment.ADIT_URL?.trim() || undefined,
    credential: environment.ADIT_EDGE_KEY?.trim() || undefined,
  }
  return { config, errors }
}

const WILDCARDS = ['0.0.0.0', '::']

/** Undefined if the edge neither accepts connections of other edges nor forwards requests to them. */
function readPeerListener(read: Read<typeof edgeSettings>, errors: string[]) {
  const port = read('ADIT_EDGE_PEER_PORT')
  if (port === undefined) return undefined
  const host = read('ADIT_EDGE_PEER_HOST') || read('ADIT_EDGE_HOST')
  const address = read('ADIT_EDGE_PEER_ADDRESS')
  if (address === '' && WILDCARDS.includes(host))
    errors.push(`ADIT_EDGE_PEER_ADDRESS must be set if ADIT_EDGE_PEER_HOST or ADIT_EDGE_HOST is ${host}`)
  return { host, port, address: address || `${host.includes(':') ? `[${host}]` : host}:${port}` }
}
