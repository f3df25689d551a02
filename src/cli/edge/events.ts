// What an edge logs.
import type { Logger } from 'pino'
import type { EdgeOptions } from '../../edge/options.ts'
import type { TunnelClient } from '../../edge/tunnels/client.ts'
import type { Tunnel } from '../../edge/tunnels/tunnel.ts'
import type { EdgeConfig } from '../../server/config/edge.ts'

type Events = Pick<EdgeOptions, Extract<keyof EdgeOptions, `on${string}`>>

export const logEvents = (log: Logger, config: Pick<EdgeConfig, 'expectsProxy'>): Events => ({
  onOpened: (tunnel, client) => log.info(describe(tunnel, client), 'tunnel opened'),
  onClosed: (tunnel, client, reason) =>
    log.info({ ...describe(tunnel, client), reason, ...client.totals }, 'tunnel closed'),
  onWrongPassword: (host, address) => log.warn({ host, address }, 'tunnel basic auth failed'),
  onUnnamedClient: (proxy) =>
    log[config.expectsProxy ? 'warn' : 'debug'](
      { proxy },
      'trusted proxy sends no X-Forwarded-For, so per-client limits do not apply; make it send the ' +
        'header, or remove it from ADIT_EDGE_TRUSTED_PROXIES',
    ),
  onPortUnavailable: (host, port, reason) =>
    log.warn(
      { host, port, reason },
      'cannot listen on the port of a TCP tunnel; stop the program that uses it',
    ),
  onConnectionsLimited: (reached) =>
    log.warn(
      reached,
      reached.limit === 'client'
        ? 'connections of a client rejected; if this is your proxy, add it to ADIT_EDGE_TRUSTED_PROXIES'
        : 'connections rejected; to accept more, raise the limit of open files (ulimit -n)',
    ),
  onCertificatesLimited: (workspace, setting) =>
    log.warn(
      { workspace },
      'workspace reached its limit of new hosts with certificates in 24 hours; to allow more, raise ' +
        setting,
    ),
  onIgnoredProxy: (peer) =>
    log.warn({ peer }, 'X-Forwarded-For ignored; if this is your proxy, add it to ADIT_EDGE_TRUSTED_PROXIES'),
})

const describe = (
  { address, workspace, clients }: Tunnel,
  { id, key, software, ...client }: TunnelClient,
) => ({
  // Not the id of the tunnel in lists: the control plane derives that.
  connection: id,
  host: address.host,
  ...(address.listener && { port: address.listener.port }),
  workspace,
  key: key.id,
  clientVersion: software,
  clientIp: client.address,
  clients: clients.size,
})
