// The HTTP server of a node, with all APIs and pages.
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { lazy } from '../../lib/lazy.ts'
import { openProgramFiles, programFolder } from '../../lib/program-files.ts'
import { type Auth, type AuthSettings, createAuth } from '../auth/sign-in.ts'
import type { SsoSettings } from '../auth/sso.ts'
import { type Config, version } from '../config/server.ts'
import type { AgentSignIn } from '../domain/agents/requests.ts'
import { createPeerSecrets } from '../domain/cluster/peer-secrets.ts'
import type { Services } from '../domain/context.ts'
import type { WebhookRules } from '../domain/webhooks/endpoints.ts'
import { workspaceDescriber } from '../domain/workspaces/manage.ts'
import { registerDashboardApi } from '../http/api/dashboard/index.ts'
import { registerDeviceApi } from '../http/api/device.ts'
import { registerEdgeApi } from '../http/api/edge.ts'
import { registerMcp } from '../http/api/mcp.ts'
import { registerOAuth } from '../http/api/oauth.ts'
import { registerPublicApi } from '../http/api/public.ts'
import { registerThirdPartyEdges } from '../http/api/third-party-edges.ts'
import { registerWorkspaceApi } from '../http/api/workspace.ts'
import type { NodeCounters } from '../http/limits/counters.ts'
import { createKnownBrowsers } from '../http/limits/known-browser.ts'
import { createRateLimit } from '../http/limits/rate-limit.ts'
import { registerApiDocs } from '../http/pages/api-docs.ts'
import { registerDashboard } from '../http/pages/dashboard-spa.ts'
import { registerHealth } from '../http/pages/health.ts'
import { registerInstall } from '../http/pages/install/routes.ts'
import { registerSiteFiles } from '../http/pages/site-files.ts'
import { ResponseCache } from '../http/response-cache/cache.ts'
import { cacheableOperations } from '../http/response-cache/cacheable-operations.ts'
import { createAccessLog } from '../http/server/access-log.ts'
import { createClientReader } from '../http/server/client-address.ts'
import { createServer } from '../http/server/create.ts'
import { createGrants } from '../verification/grants.ts'
import { createTopics } from '../verification/topics.ts'
import type { Mail, Node } from './node.ts'

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
export function createApiServer(options: ApiServerOptions) {
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
  registerWorkspaceApi(server, { ...forKeys, publicUrl })
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

interface DashboardPagesOptions extends Mail {
  server: FastifyInstance
  config: Config
  services: Services
  counters: NodeCounters
  secret: string
  log: Logger
  webhooks: WebhookRules
  agents: AgentSignIn
}

/** The dashboard, its API, sign-in from a terminal and the API reference. */
export async function registerDashboardPages(options: DashboardPagesOptions) {
  const { server, config, services, counters, secret, log, publicUrl, sendMail, webhooks, agents } = options
  const { variant, baseUrl } = config
  const https = isHttps(config)
  const settings = { services, secret, https, onProblem: logAuth(log) }
  const auth = createAuth(settings)
  const sso = config.sso && createLazySso(settings, auth, config.sso, publicUrl)
  registerDashboardApi(server, {
    services,
    counters,
    variant,
    baseUrl,
    publicUrl,
    auth,
    sso,
    knownBrowsers: createKnownBrowsers({ secret, https }),
    sendMail,
    webhooks,
    agents,
  })
  registerDeviceApi(server, { services, counters, baseUrl })
  registerOAuth(server, { services, agents, counters, baseUrl, origins: config.mcpOrigins })
  const executables = config.executables ?? join(programFolder(), 'executables')
  registerInstall(server, { files: openProgramFiles('dist'), executables, publicUrl })
  const pages = openProgramFiles('web/dist')
  const { securityContact } = config
  registerSiteFiles(server, { files: pages, baseUrl, securityContact, clock: services.clock })
  registerApiDocs(server, pages, baseUrl)
  await registerDashboard(server, pages, baseUrl)
  return { sso }
}

const isHttps = ({ baseUrl }: Config): boolean => baseUrl?.startsWith('https:') ?? false

/** Single sign-on, loaded on first use. */
const createLazySso = (settings: AuthSettings, auth: Auth, sso: SsoSettings, publicUrl: () => string) => ({
  host: new URL(sso.issuer).host,
  open: lazy(async () => (await import('../auth/sso.ts')).createSso(settings, auth, sso, publicUrl())),
})

const logAuth =
  (log: Logger): AuthSettings['onProblem'] =>
  (level, message) =>
    log[level]({ from: 'sign-in' }, message)
