// `adit edge`: runs a tunnel edge, with keys from a control plane or from a tokens file.

import { type EdgeOptions, startEdge } from '../../edge/start.ts'
import { openLocalPorts } from '../../edge/tcp/local-ports.ts'
import type { Tunnel } from '../../edge/tunnel.ts'
import type { TunnelClient } from '../../edge/tunnel-client.ts'
import {
  ControlPlaneError,
  createControlPlane,
  openTokensFile,
  startMeter,
  startTunnelReporter,
  startVerifier,
  TokensFileError,
  type VerifierOptions,
} from '../../edge-sdk/index.ts'
import { createLog, flushLog } from '../../lib/log.ts'
import { type EdgeSources, edgeMetrics } from '../../lib/metrics/edge-metrics.ts'
import { startMetricsListener } from '../../lib/metrics/listener.ts'
import { createRegistry } from '../../lib/metrics/registry.ts'
import { type ListenAddress, listenError } from '../../lib/net/listen-error.ts'
import { createFetch } from '../../lib/net/proxy/fetch.ts'
import { ProxyError } from '../../lib/net/proxy/tunnel.ts'
import { type EdgeConfig, readEdgeConfig } from '../../server/config/edge.ts'
import { commandName, readProxies, unknownSettings } from '../../server/config/environment.ts'
import { version } from '../../server/config/server.ts'
import { CommandError, NotAuthenticated, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { awaitShutdown } from '../server/shutdown.ts'
import { green, type Text, yellow } from '../style.ts'
import { withCertificateAdvice } from './certificate-advice.ts'

interface KeyAccess extends Pick<EdgeOptions, 'startVerifier' | 'startReporter' | 'meter' | 'localPorts'> {
  /** URL of the control plane, or path of the tokens file. */
  readonly verifiedBy: string
  /** Why the control plane cannot verify keys yet. */
  readonly unreachable?: string | undefined
}
type OnNotice = NonNullable<VerifierOptions['onNotice']>

export async function edge(input: { 'tokens-file': string | undefined }, io: Io): Promise<void> {
  const config = readEdgeConfig()
  const log = createLog(config.logLevel)
  const unknown = unknownSettings()
  if (unknown.length > 0) log.warn({ unknown }, 'unknown ADIT_ variables ignored')
  const file = input['tokens-file']
  if (file === undefined && config.tcpPorts.range)
    log.warn('ADIT_EDGE_TCP_PORTS ignored: the control plane assigns ports, from its ADIT_TCP_PORTS')
  if (file !== undefined && config.peerListener)
    log.warn('ADIT_EDGE_PEER_PORT ignored: without a control plane, an edge has no peers')
  const onNotice = (line: string) => log.warn(withCertificateAdvice(line))
  const shutdown = awaitShutdown(0)
  // Closes if `adit serve --edge`, which started this process, is killed.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
  const access = await (file === undefined
    ? useControlPlane(config, { onNotice, onReady: (url) => log.info(`ready: keys verified by ${url}`) })
    : useTokensFile(file, config, onNotice))
  const {
    url,
    metrics: sources,
    stop,
  } = await startEdge({
    ...config,
    ...access,
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
      log.warn(
        { peer },
        'X-Forwarded-For ignored; if this is your proxy, add it to ADIT_EDGE_TRUSTED_PROXIES',
      ),
  }).catch((error) => {
    throw toStartError(error, config)
  })
  const metrics =
    config.metrics &&
    (await startMetrics(config.metrics, { version, ...sources }, log).catch(async (error) => {
      await stop()
      throw error
    }))
  const { unreachable } = access
  const controlPlane = file === undefined ? { controlPlane: unreachable ? 'unreachable' : 'reachable' } : {}
  const facts = { url, ...(metrics && { metrics: metrics.url }), pid: process.pid, ...controlPlane }
  if (file === undefined) log.info({ folder: config.folder }, 'storing unreported usage')
  io.data(facts, announcement(url, metrics?.url, access))
  log.info({ reason: await shutdown.requested }, 'stopping: completing open requests, closing tunnels')
  await stop()
  await metrics?.stop()
  log.info('stopped')
  await flushLog(log)
  process.exit()
}

const describe = (
  { address, workspace, clients }: Tunnel,
  { id, key, software, ...client }: TunnelClient,
) => ({
  id,
  host: address.host,
  ...(address.listener && { port: address.listener.port }),
  workspace,
  key: key.id,
  clientVersion: software,
  clientIp: client.address,
  clients: clients.size,
})

function announcement(
  url: string,
  metricsUrl: string | undefined,
  { verifiedBy, unreachable }: KeyAccess,
): Text {
  if (unreachable)
    return [
      '\n',
      yellow('Not ready:'),
      ` the control plane cannot be reached. ${withCertificateAdvice(unreachable)}\n`,
      `Edge listening on ${url}; it retries, and rejects tunnels until ${verifiedBy} responds.\n`,
    ]
  return [
    '\n',
    green('Edge listening'),
    ` on ${url}; keys verified by ${verifiedBy}\n\n`,
    ...(metricsUrl ? [`  Metrics        ${metricsUrl}\n`] : []),
    `  Open a tunnel  ${commandName()} tunnel 3000 --edge ${url}\n`,
  ]
}

async function useControlPlane(
  { controlPlaneUrl: url, credential, folder, peerListener }: EdgeConfig,
  /** `onReady`: the control plane was unreachable at the start, and is reached now. */
  { onNotice, onReady }: { onNotice: OnNotice; onReady: (url: string) => void },
): Promise<KeyAccess> {
  if (url === undefined || credential === undefined) throw missingAccess(url, credential)
  const controlPlane = asUsageError(() =>
    createControlPlane({ url, credential, fetch: createFetch(readProxies()) }),
  )
  const unreachable = await checkCredential(controlPlane, url)
  const meter = await startMeter(controlPlane, { folder, onNotice }).catch(rethrowAsFolderError)
  let isReady = unreachable === undefined
  const onConnected = () => {
    if (!isReady) onReady(url)
    isReady = true
  }
  return {
    startVerifier: (on) =>
      startVerifier(controlPlane, {
        ...on,
        onQuota(workspace, quota) {
          meter.setQuota(workspace, quota)
          on.onQuota(workspace, quota)
        },
        cluster: peerListener !== undefined,
        onNotice,
        onConnected,
      }),
    startReporter: (on) =>
      startTunnelReporter(controlPlane, {
        ...on,
        peerAddress: peerListener?.address,
        version: `adit ${version}`,
        onNotice,
      }),
    meter,
    localPorts: undefined,
    verifiedBy: url,
    unreachable,
  }
}

function rethrowAsFolderError({ message }: Error): never {
  throw new CommandError('folder', `${message} ADIT_EDGE_FOLDER sets the folder.`)
}

function missingAccess(url: string | undefined, credential: string | undefined): UsageError {
  const missing = [
    url === undefined && 'ADIT_URL (URL of the control plane)',
    credential === undefined &&
      'ADIT_EDGE_KEY (credential of this edge; create one there with `adit admin edge create <name>`)',
  ].filter(Boolean)
  return new UsageError(
    `Missing ${missing.join(' and ')}. Without a control plane, use --tokens-file <path>.`,
  )
}

/** The reason if the control plane cannot be reached yet; throws if it or a proxy rejects the credential. */
async function checkCredential(
  controlPlane: ReturnType<typeof createControlPlane>,
  url: string,
): Promise<string | undefined> {
  try {
    await controlPlane.verify('')
    return undefined
  } catch (error) {
    if (!(error instanceof ControlPlaneError)) throw error
    if (error.cause instanceof ProxyError && error.cause.isFinal)
      throw new CommandError('proxy_rejected', error.message)
    if (error.status !== 401) return error.message
    throw new NotAuthenticated(`${url} rejected the credential in ADIT_EDGE_KEY: ${error.message}`)
  }
}

async function useTokensFile(
  file: string,
  { tunnelDomain, folder, tcpPorts: { range, ...rules } }: EdgeConfig,
  onNotice: OnNotice,
): Promise<KeyAccess> {
  const localPorts = range && (await openLocalPorts({ folder, range, ...rules }).catch(rethrowAsFolderError))
  return {
    startVerifier: ({ onRevoked }) => openTokensFile(file, { tunnelDomain, onRevoked, onNotice }),
    startReporter: undefined,
    meter: undefined,
    localPorts,
    verifiedBy: file,
  }
}

function asUsageError<T>(create: () => T): T {
  try {
    return create()
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function startMetrics(address: ListenAddress, sources: EdgeSources, log: ReturnType<typeof createLog>) {
  const listener = await startMetricsListener(address, await createRegistry(edgeMetrics(sources)), (error) =>
    log.error({ err: error }, 'failed to collect metrics'),
  ).catch((error) => {
    throw listenError(address, 'ADIT_METRICS', error)
  })
  log.info({ url: listener.url }, 'metrics listening')
  return listener
}

function toStartError(error: unknown, { peerListener, ...address }: EdgeConfig): unknown {
  if (error instanceof TokensFileError) return new CommandError('tokens_file', error.message)
  const { code, port } = error as NodeJS.ErrnoException & { port?: number }
  if (code === undefined) return error
  return peerListener && port === peerListener.port
    ? listenError(peerListener, 'ADIT_EDGE_PEER', error)
    : listenError(address, 'ADIT_EDGE', error)
}
