// Starts a node of the control plane: node.ts (verification, background work) → routes.ts (HTTP) → listener.
// Only this folder and services.ts construct parts.
import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type MetricsListener, startMetricsListener } from '../../lib/metrics/listener.ts'
import { createRegistry } from '../../lib/metrics/registry.ts'
import { type ListenAddress, listenError } from '../../lib/net/listen-error.ts'
import { listenUrl } from '../../lib/net/listen-url.ts'
import { type Listener, startListener } from '../../lib/net/listener.ts'
import { errorMessage } from '../../lib/startup-error.ts'
import type { Primary } from '../../workers/worker.ts'
import { type Config, version } from '../config/server.ts'
import { loadCommonPasswords } from '../domain/accounts/passwords.ts'
import { createAgentSignIn } from '../domain/agents/requests.ts'
import type { Services } from '../domain/context.ts'
import { createWebhookSecrets } from '../domain/webhooks/secrets.ts'
import { countersHandler, createCounters, remoteCounters } from '../http/limits/counters.ts'
import { drain } from '../http/server/drain.ts'
import { createMail, type SendMail } from '../mail.ts'
import { createTargets } from '../outbound/targets.ts'
import { sessionSecret } from '../session-secret.ts'
import { startWebhookDelivery } from '../webhooks/delivery.ts'
import { createDocumentFetch } from './client-documents.ts'
import { nodeMetrics, startNode } from './node.ts'
import { createApiServer, registerDashboardPages } from './routes.ts'

export interface Running {
  url: string
  /** Undefined if metrics are not enabled. */
  metricsUrl: string | undefined
  /** Loads the modules for sign-in ahead of the first one: loading blocks the event loop briefly. */
  loadSignIn(): Promise<void>
  /** /readyz returns 503 and responses close their connection; requests are still served. */
  announceStop(): void
  /** Another worker listens on the same port: /readyz does not change, and idle connections stay longer. */
  announceReplacement(): void
  /** Drains requests, flushes pending writes and closes the database. */
  stop(): Promise<void>
}

export async function startServer(
  config: Config,
  opened: Services,
  log: Logger,
  primary?: Primary,
): Promise<Running> {
  const { store } = opened
  const secret = await secretOrClose(config, store)
  // Stored, because a server that is closing has no address.
  let url = ''
  const publicUrl = () => config.baseUrl ?? url
  const sendMail = config.mail && countMails(createMail(config.mail), opened.instruments.mails)
  const secrets = createWebhookSecrets(secret, opened.random)
  const targets = createTargets({ privateNetworks: config.webhookPrivateNetworks })
  const userAgent = `Adit/${version}`
  const node = await startNode(config, opened, log, { sendMail, publicUrl })
  const deliveries = startWebhookDelivery(node.services, {
    secrets,
    targets,
    userAgent,
    onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'webhook delivery failed; will retry'),
    onRecovery: () => log.info('webhook delivery recovered'),
  })
  let stopping = false
  let isReplaced = false
  const closing = new AbortController()
  let metrics: MetricsListener | undefined
  const counters = primary ? remoteCounters(primary.call) : createCounters(opened.clock)
  let listener: Listener | undefined
  const { server, openStreams } = createApiServer({
    config,
    secret,
    node,
    counters,
    log,
    isStopping: () => stopping,
    isReady: () => !stopping || isReplaced,
    closing: closing.signal,
    publicUrl,
  })
  const { sso } = await registerDashboardPages({
    server,
    config,
    services: node.services,
    counters,
    secret,
    log,
    publicUrl,
    sendMail,
    agents: createAgentSignIn(node.services, {
      secret,
      publicUrl,
      fetchDocument: createDocumentFetch({ targets, userAgent }),
    }),
    webhooks: { secrets, allowsHttp: targets.allowsHttp, isForbiddenLiteral: targets.isForbiddenLiteral },
  })

  const announceStop = () => {
    stopping = true
  }
  const announceReplacement = () => {
    stopping = true
    isReplaced = true
  }
  async function stop(): Promise<void> {
    announceStop()
    // Ends the change streams and waiting requests, which the drain would otherwise wait for.
    closing.abort()
    const idle = Promise.all([node.maintenance.stop(), deliveries.stop()])
    if (listener) await drain(server.server, listener, isReplaced ? 'replace' : 'stop')
    await server.close()
    await idle
    await node.quotaWatch.stop()
    await node.cluster.stop()
    await node.follower.deregister()
    const { lost } = await node.lastUsed.stop()
    if (lost > 0) log.error({ keys: lost }, 'failed to flush lastUsedAt before shutdown')
    await store.close()
    await metrics?.stop()
  }
  async function orStop<T>(address: ListenAddress, settings: string, listen: () => Promise<T>): Promise<T> {
    try {
      return await listen()
    } catch (error) {
      await stop()
      throw listenError(address, settings, error)
    }
  }

  const { metrics: metricsAddress } = config
  const { host, port } = config
  await server.ready()
  listener = await orStop(config, 'ADIT', () =>
    startListener(server.server, {
      host,
      port,
      ...(primary && { inheritedSockets: primary.sockets }),
      onError: (error) => log.error({ err: error }, 'cannot accept connections'),
    }),
  )
  url = listenUrl(host, listener.address)
  await listener.allListening
  primary?.announceListening(listener.address.port)
  if (metricsAddress) {
    const registry = await createRegistry(nodeMetrics(node, openStreams))
    if (primary) primary.offerMetrics(() => registry.getMetricsAsJSON())
    else
      metrics = await orStop(metricsAddress, 'ADIT_METRICS', () =>
        startMetricsListener(metricsAddress, registry, logMetricsFailure(log)),
      )
  }
  const loadSignIn = async () => {
    if (stopping) return
    await sso?.open()
    await setImmediate()
    await loadCommonPasswords()
  }
  return { url, metricsUrl: metrics?.url, loadSignIn, announceStop, announceReplacement, stop }
}

async function secretOrClose(config: Config, store: Services['store']): Promise<string> {
  try {
    return sessionSecret(config)
  } catch (error) {
    await store.close()
    throw error
  }
}

export const logMetricsFailure = (log: Logger) => (error: unknown) =>
  log.error({ err: error }, 'failed to collect metrics')

/** The primary counts what the limits of all its workers need. */
export const handleCounterCalls = () => countersHandler(createCounters(Date.now))

const countMails =
  (send: SendMail, counts: { sent: number; failed: number }): SendMail =>
  async (email) => {
    try {
      await send(email)
      counts.sent += 1
    } catch (error) {
      counts.failed += 1
      throw error
    }
  }
