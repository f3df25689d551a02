// The composition root: services → credential verifier → HTTP. Only this file and services.ts construct
// parts.
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { lazy } from '../lib/lazy.ts'
import { type MetricsListener, startMetricsListener } from '../lib/metrics/listener.ts'
import { createRegistry } from '../lib/metrics/registry.ts'
import { serverMetrics } from '../lib/metrics/server-metrics.ts'
import { type ListenAddress, listenError } from '../lib/net/listen-error.ts'
import { listenUrl } from '../lib/net/listen-url.ts'
import { type Listener, startListener } from '../lib/net/listener.ts'
import { openProgramFiles, programFolder } from '../lib/program-files.ts'
import { errorMessage } from '../lib/startup-error.ts'
import type { Primary } from '../workers/worker.ts'
import { type Auth, type AuthSettings, createAuth } from './auth/sign-in.ts'
import type { SsoSettings } from './auth/sso.ts'
import { type Config, version } from './config/server.ts'
import { loadCommonPasswords } from './domain/accounts/passwords.ts'
import { startClusterFollower } from './domain/cluster/follower.ts'
import { createPeerSecrets } from './domain/cluster/peer-secrets.ts'
import type { Services } from './domain/context.ts'
import { KeyRejections } from './domain/keys/rejections.ts'
import { startMaintenance } from './domain/maintenance/job.ts'
import { lastBackupReader, portUseReader, queueSizeReader } from './domain/maintenance/queue-sizes.ts'
import { startQuotaWatch } from './domain/quotas/watch.ts'
import type { WebhookRules } from './domain/webhooks/endpoints.ts'
import { createWebhookSecrets } from './domain/webhooks/secrets.ts'
import { workspaceDescriber } from './domain/workspaces/manage.ts'
import { registerDashboardApi } from './http/api/dashboard/index.ts'
import { registerDeviceApi } from './http/api/device.ts'
import { registerEdgeApi } from './http/api/edge.ts'
import { registerMcp } from './http/api/mcp.ts'
import { registerPublicApi } from './http/api/public.ts'
import { registerThirdPartyEdges } from './http/api/third-party-edges.ts'
import { registerWorkspaceApi } from './http/api/workspace.ts'
import { countersHandler, createCounters, type NodeCounters, remoteCounters } from './http/limits/counters.ts'
import { createKnownBrowsers } from './http/limits/known-browser.ts'
import { createRateLimit } from './http/limits/rate-limit.ts'
import { registerApiDocs } from './http/pages/api-docs.ts'
import { registerDashboard } from './http/pages/dashboard-spa.ts'
import { registerHealth } from './http/pages/health.ts'
import { registerInstall } from './http/pages/install/routes.ts'
import { registerSiteFiles } from './http/pages/site-files.ts'
import { ResponseCache } from './http/response-cache/cache.ts'
import { cacheableOperations } from './http/response-cache/cacheable-operations.ts'
import { createAccessLog } from './http/server/access-log.ts'
import { createClientReader } from './http/server/client-address.ts'
import { createServer } from './http/server/create.ts'
import { drain } from './http/server/drain.ts'
import { createMail, type SendMail } from './mail.ts'
import { sessionSecret } from './session-secret.ts'
import { startChangeFollower } from './verification/change-follower.ts'
import { createEdgeWorkspaces } from './verification/edge-workspaces.ts'
import { createGrants } from './verification/grants.ts'
import { startLastUsedTracker } from './verification/last-used.ts'
import { createTopics } from './verification/topics.ts'
import { createCredentialVerifier } from './verification/verify.ts'
import { startWebhookDelivery } from './webhooks/delivery.ts'
import { createTargets } from './webhooks/targets.ts'

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
  const node = await startNode(config, opened, log, { sendMail, publicUrl })
  const deliveries = startWebhookDelivery(node.services, {
    secrets,
    targets,
    userAgent: `Adit/${version}`,
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
  const settings = { services: node.services, secret, https: isHttps(config), onProblem: logAuth(log) }
  const auth = createAuth(settings)
  const sso = config.sso && createLazySso(settings, auth, config.sso, publicUrl)
  await registerDashboardPages({
    server,
    config,
    services: node.services,
    counters,
    secret,
    publicUrl,
    auth,
    sso,
    sendMail,
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

type Node = Awaited<ReturnType<typeof startNode>>

interface Mail {
  sendMail: SendMail | undefined
  /** The URL that links begin with. */
  publicUrl: () => string
}

/** Registers this process as a node and follows the change log. */
async function startNode(config: Config, opened: Services, log: Logger, { sendMail, publicUrl }: Mail) {
  const { store, clock } = opened
  const identity = { id: opened.ids('node'), host: hostname(), pid: process.pid, version }
  const events = {
    onFailure: (error: unknown) => log.warn({ reason: errorMessage(error) }, 'change log polling failed'),
    onRecovery: () => log.info('change log polling recovered'),
  }
  const follower = await startChangeFollower(store, clock, identity, events, config.fencing)
  const services: Services = {
    ...opened,
    afterChange: follower.receive,
    afterReport: (counters) => quotaWatch.noteReport(counters),
    afterLocations: () => cluster.wake(),
  }
  const cluster = startClusterFollower(store, follower)
  const quotaWatch = startQuotaWatch(services, {
    follower,
    onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'checking quotas failed; will retry'),
    onRecovery: () => log.info('checking quotas recovered'),
  })
  const lastUsed = startLastUsedTracker(store, clock, {
    onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'flushing lastUsedAt failed; will retry'),
    onRecovery: () => log.info('flushing lastUsedAt recovered'),
  })
  const rejections = new KeyRejections(clock)
  const verifier = createCredentialVerifier({
    store,
    follower,
    lastUsed,
    onRejected: (hash) => rejections.record(hash),
    keysMax: config.limits.keysInMemory,
  })
  const edgeWorkspaces = createEdgeWorkspaces({
    store,
    follower,
    verifier,
    pairsMax: Math.ceil(config.limits.keysInMemory / 10),
  })
  const maintenance = startMaintenance(services, {
    id: identity.id,
    events: {
      onDeleted: (rows) => log.info({ rows }, 'deleted rows past their retention'),
      onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'maintenance failed; will retry'),
      onRecovery: () => log.info('maintenance recovered'),
      onSilentEdge: ({ id, name }) =>
        log.warn({ edge: id, name }, 'edge has not reported its tunnels for 5 minutes'),
      onScarcePorts: (use) => log.warn(use, 'most ports for TCP tunnels are assigned; extend ADIT_TCP_PORTS'),
    },
    rejections,
    databaseUpForMs: follower.readableForMs,
    mail: sendMail && {
      send: sendMail,
      publicUrl,
      operator: config.operatorEmail,
      onFailure: (error) => log.warn({ reason: errorMessage(error) }, 'failed to send a notice; will retry'),
    },
  })
  return { services, follower, cluster, lastUsed, verifier, edgeWorkspaces, maintenance, quotaWatch }
}

/** What the metrics of this node read. */
const nodeMetrics = ({ services, verifier, follower }: Node, openStreams: () => number) =>
  serverMetrics({
    version,
    instruments: services.instruments,
    keyVerdicts: verifier.keyVerdicts,
    edgeVerdicts: verifier.edgeVerdicts,
    follower,
    openStreams,
    poolUse: services.store.poolUse,
    areCommitsBlocked: services.store.areCommitsBlocked,
    queueSizes: queueSizeReader(services),
    lastBackup: lastBackupReader(services),
    portUse: portUseReader(services),
  })

interface ApiServerOptions {
  config: Config
  secret: string
  node: Node
  counters: NodeCounters
  log: Logger
  isStopping: () => boolean
  isReady: () => boolean
  /** Aborted when change streams and waiting requests have to end. */
  closing: AbortSignal
  publicUrl: () => string
}

/** The HTTP server with the APIs for keys and edges. */
function createApiServer(options: ApiServerOptions) {
  const { config, secret, node, counters, log, isStopping, isReady, closing, publicUrl } = options
  const { services, verifier, edgeWorkspaces, follower } = node
  const { variant, baseUrl, trustedProxies } = config
  const { requestsPerMinute } = config.limits
  const rateLimit = requestsPerMinute ? createRateLimit(requestsPerMinute, counters) : undefined
  const client = createClientReader(trustedProxies)
  const trustsProxies = trustedProxies.length > 0
  const describeWorkspace = workspaceDescriber(services, createTopics(secret))
  const operations = cacheableOperations({
    verifier,
    edgeWorkspaces,
    describeWorkspace,
    hasDataVersion: services.store.dataVersion !== undefined,
    isRateLimited: rateLimit !== undefined,
  })
  const accessLog = createAccessLog(log, config.accessLog)
  const responseCache = new ResponseCache({
    operations,
    hashSecret: verifier.hashCredential,
    isStopping,
    client,
    trustsProxies,
    accessLog,
  })
  const https = isHttps(config)
  const { requests: durations } = services.instruments
  const server = createServer({
    log,
    isStopping,
    https,
    client,
    trustsProxies,
    responseCache,
    accessLog,
    durations,
  })
  const { ping, areCommitsBlocked } = services.store
  registerHealth(server, { isReady, ping, areCommitsBlocked, mayRead: follower.mayRead })
  const forKeys = { services, verifier, counters, rateLimit, variant, baseUrl, describeWorkspace }
  registerPublicApi(server, forKeys)
  registerWorkspaceApi(server, forKeys)
  registerMcp(server, { ...forKeys, version, publicUrl, origins: config.mcpOrigins })
  const forEdges = { services, verifier, edgeWorkspaces, follower, closing, describeWorkspace }
  const cluster = {
    follower: node.cluster,
    secrets: createPeerSecrets(secret),
    tunnelDomain: services.tunnelDomain,
    databaseTime: follower.databaseTime,
  }
  const grants = createGrants(secret)
  const { openStreams } = registerEdgeApi(server, { ...forEdges, grants, cluster, baseUrl })
  registerThirdPartyEdges(server, { ...forEdges, clock: services.clock })
  return { server, openStreams }
}

type LazySso = ReturnType<typeof createLazySso>

/** Single sign-on, loaded on first use. */
const createLazySso = (settings: AuthSettings, auth: Auth, sso: SsoSettings, publicUrl: () => string) => ({
  host: new URL(sso.issuer).host,
  open: lazy(async () => (await import('./auth/sso.ts')).createSso(settings, auth, sso, publicUrl())),
})

interface DashboardPagesOptions extends Mail {
  server: FastifyInstance
  config: Config
  services: Services
  counters: NodeCounters
  secret: string
  auth: Auth
  sso: LazySso | undefined
  webhooks: WebhookRules
}

/** The dashboard, its API, sign-in from a terminal and the API reference. */
async function registerDashboardPages(options: DashboardPagesOptions): Promise<void> {
  const { server, config, services, counters, secret, publicUrl, auth, sso, sendMail, webhooks } = options
  const { variant, baseUrl } = config
  registerDashboardApi(server, {
    services,
    counters,
    variant,
    baseUrl,
    publicUrl,
    auth,
    sso,
    knownBrowsers: createKnownBrowsers({ secret, https: isHttps(config) }),
    sendMail,
    webhooks,
  })
  registerDeviceApi(server, { services, counters, baseUrl })
  const executables = config.executables ?? join(programFolder(), 'executables')
  registerInstall(server, { files: openProgramFiles('dist'), executables, publicUrl })
  const pages = openProgramFiles('web/dist')
  const { securityContact } = config
  registerSiteFiles(server, { files: pages, baseUrl, securityContact, clock: services.clock })
  registerApiDocs(server, pages, baseUrl)
  await registerDashboard(server, pages, baseUrl)
}

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

const isHttps = ({ baseUrl }: Config): boolean => baseUrl?.startsWith('https:') ?? false

async function secretOrClose(config: Config, store: Services['store']): Promise<string> {
  try {
    return sessionSecret(config)
  } catch (error) {
    await store.close()
    throw error
  }
}

const logAuth =
  (log: Logger): AuthSettings['onProblem'] =>
  (level, message) =>
    log[level]({ from: 'sign-in' }, message)

export const logMetricsFailure = (log: Logger) => (error: unknown) =>
  log.error({ err: error }, 'failed to collect metrics')
