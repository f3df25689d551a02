// The settings of the server, parsed from the environment once and frozen. Only this file and config/ read
// the environment.
import { availableParallelism } from 'node:os'
import { isEmail } from '../../contract/fields.ts'
import type { Variant } from '../../contract/variants.ts'
import type { TcpPortSettings } from '../../lib/net/tcp-ports.ts'
import type { Target } from '../store/engine/store.ts'
import { defaultPath } from './data-folder.ts'
import { createReader, type Parsed, requireValid, setting } from './setting.ts'
import {
  readBaseUrl,
  readDatabaseUrl,
  readDomain,
  readInteger,
  readNetworks,
  readOrigins,
  readPortRange,
  readQuantity,
  readSmtpUrl,
} from './values.ts'

export interface Config {
  readonly host: string
  readonly port: number
  /** Public URL of the server; undefined means the address it listens on. */
  readonly baseUrl: string | undefined
  readonly database: Target
  readonly tunnelDomain: string
  readonly variant: Variant
  readonly requestsPerMinute: number | undefined
  /** Of a user and of an API key. */
  readonly writesPerHour: number
  readonly keysInMemory: number
  /** The fastest link of any edge: more usage than it can carry in a day is rejected. */
  readonly usageLinkGbps: number
  /** Of workspaces that have none of their own; null: no limit. */
  readonly defaultQuotas: Readonly<Record<'bytes' | 'requests' | 'tunnels', number | null>> & {
    readonly keys: number
  }
  readonly tcpPorts: TcpPortSettings
  readonly usersCreateWorkspaces: boolean
  /** Signs sessions and encrypts two-factor secrets; undefined means a file next to the database. */
  readonly secret: string | undefined
  readonly trustedProxies: readonly string[]
  /** OpenID Connect identity provider for single sign-on. */
  readonly sso: { issuer: string; clientId: string; clientSecret: string; linkByEmail: boolean } | undefined
  /** Networks that webhooks may be sent to, besides public addresses. */
  readonly webhookPrivateNetworks: readonly string[]
  /** Origins of pages that may use /mcp, besides the server's own. */
  readonly mcpOrigins: readonly string[]
  readonly mail: { url: string; from: string } | undefined
  /** Who is told about edges that do not report. */
  readonly operatorEmail: string | undefined
  /** How long to keep serving after a shutdown was requested. */
  readonly stopDelayS: number
  /** Undefined: the audit log is kept. */
  readonly auditRetentionDays: number | undefined
  /** Where metrics are served; undefined: nowhere. */
  readonly metrics: { host: string; port: number } | undefined
  /** Processes that serve requests. */
  readonly workers: number
  readonly logLevel: string
}

/** The same as in package.json, which a test checks. */
export const version = '0.1.0'

const WORKERS_MAX = 64
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

export const settings = {
  ADIT_HOST: setting('address to listen on', '127.0.0.1', (text) => text),
  ADIT_PORT: setting('port to listen on; 0 picks a free one', '8080', (text) => readInteger(text, 0, 65_535)),
  ADIT_BASE_URL: setting('public URL of the server, e.g. https://adit.example.com', '', readBaseUrl),
  ADIT_DATABASE_URL: setting(
    'sqlite:<path> or postgres://…; empty for adit.db in the data folder of the user',
    '',
    (text, environment): Target =>
      text === '' ? { engine: 'sqlite', path: defaultPath('adit.db', environment) } : readDatabaseUrl(text),
  ),
  ADIT_TUNNEL_DOMAIN: setting('domain of all tunnels', 'localhost', readDomain),
  ADIT_API_VARIANT: setting(
    'A: API keys can create and revoke API keys; B: they can only read',
    'A',
    (text): Variant => {
      if (text !== 'A' && text !== 'B') throw new Error('must be A or B')
      return text
    },
  ),
  ADIT_RATE_LIMIT: setting('requests per API key and minute, per node; empty for no limit', '', (text) =>
    text === '' ? undefined : readInteger(text, 1, 1_000_000),
  ),
  ADIT_WRITES_PER_HOUR: setting('changes by a user or an API key per hour, per node', '600', (text) =>
    readInteger(text, 1, 1_000_000),
  ),
  ADIT_KEYS_IN_MEMORY: setting(
    'maximum number of API keys that a node caches, about 250 bytes each',
    '2000000',
    (text) => readInteger(text, 10, 33_000_000),
  ),
  ADIT_USAGE_LINK_GBPS: setting(
    'fastest link of any edge in Gbit/s; usage that exceeds it is rejected',
    '100',
    (text) => readInteger(text, 1, 1_000),
  ),
  ADIT_BYTES_PER_MONTH: setting(
    'bytes of a workspace per month, e.g. 500G; empty for no limit',
    '',
    (text) => (text === '' ? null : readQuantity(text)),
  ),
  ADIT_REQUESTS_PER_MONTH: setting(
    'requests of a workspace per month, e.g. 10M; empty for no limit',
    '',
    (text) => (text === '' ? null : readQuantity(text)),
  ),
  ADIT_TUNNELS_PER_WORKSPACE: setting(
    'maximum number of open tunnels per workspace; empty for no limit',
    '',
    (text) => (text === '' ? null : readInteger(text, 1, 1_000_000)),
  ),
  ADIT_KEYS_PER_WORKSPACE: setting('maximum number of active API keys per workspace', '1000', (text) =>
    readInteger(text, 1, 1_000_000),
  ),
  ADIT_TCP_PORTS: setting(
    'ports of TCP tunnels at all edges, e.g. 20000-20999; empty for none',
    '',
    readPortRange,
  ),
  ADIT_TCP_PORTS_PER_WORKSPACE: setting(
    'maximum number of ports for TCP tunnels per workspace',
    '10',
    (text) => readInteger(text, 1, 1_000),
  ),
  ADIT_TCP_PORT_RETENTION_DAYS: setting(
    'days after its last use for which a port stays with its name',
    '7',
    (text) => readInteger(text, 1, 3_650),
  ),
  ADIT_WORKSPACE_CREATION: setting(
    'who creates workspaces: operator, or users too, in the dashboard',
    'operator',
    (text) => {
      if (text !== 'operator' && text !== 'users') throw new Error('must be operator or users')
      return text
    },
  ),
  ADIT_SECRET: setting(
    'signs sessions, the same on every node; required with PostgreSQL, else generated next to the database',
    '',
    (text) => {
      if (text !== '' && text.length < 32) throw new Error('must have at least 32 random characters')
      return text || undefined
    },
  ),
  ADIT_TRUSTED_PROXIES: setting(
    'comma-separated addresses of proxies whose X-Forwarded-For is trusted',
    '',
    readNetworks,
  ),
  ADIT_OIDC_ISSUER: setting('issuer URL of an OpenID Connect identity provider', '', readBaseUrl),
  ADIT_OIDC_CLIENT_ID: setting('OIDC client ID', '', (text) => text || undefined),
  ADIT_OIDC_CLIENT_SECRET: setting('OIDC client secret', '', (text) => text || undefined),
  ADIT_OIDC_LINK_BY_EMAIL: setting(
    'true: a user with the verified email of an existing account is signed in to it',
    'false',
    (text) => {
      if (text !== 'true' && text !== 'false') throw new Error('must be true or false')
      return text === 'true'
    },
  ),
  ADIT_SMTP_URL: setting('mail server: smtp://user:password@host:port', '', readSmtpUrl),
  ADIT_MAIL_FROM: setting('sender of mail, e.g. Adit <adit@example.com>', '', (text) => text || undefined),
  ADIT_OPERATOR_EMAIL: setting('address for alerts to the operator, e.g. ops@example.com', '', (text) => {
    if (text !== '' && !isEmail(text)) throw new Error('must be an email address')
    return text || undefined
  }),
  ADIT_WEBHOOK_PRIVATE_NETWORKS: setting(
    'comma-separated private networks that webhooks may be sent to, besides public addresses',
    '',
    readNetworks,
  ),
  ADIT_MCP_ORIGINS: setting(
    'comma-separated origins whose pages may use /mcp, e.g. https://agents.example.com',
    '',
    readOrigins,
  ),
  ADIT_AUDIT_RETENTION_DAYS: setting(
    'days after which audit log entries are deleted; empty to keep them',
    '',
    (text) => (text === '' ? undefined : readInteger(text, 1, 36_500)),
  ),
  ADIT_STOP_DELAY: setting(
    'seconds to keep serving after SIGTERM, while /readyz already returns 503',
    '0',
    (text) => readInteger(text, 0, 300),
  ),
  ADIT_METRICS_PORT: setting(
    'port of the metrics listener; 0 picks a free one, empty for none',
    '',
    (text) => (text === '' ? undefined : readInteger(text, 0, 65_535)),
  ),
  ADIT_METRICS_HOST: setting('address of the metrics listener', '127.0.0.1', (text) => text),
  ADIT_WORKERS: setting('processes that serve requests; auto: one for each CPU', '1', (text) =>
    text === 'auto' ? Math.min(availableParallelism(), WORKERS_MAX) : readInteger(text, 1, WORKERS_MAX),
  ),
  ADIT_LOG_LEVEL: setting(LOG_LEVELS.join(', '), 'info', (text) => {
    if (!LOG_LEVELS.includes(text)) throw new Error(`must be one of ${LOG_LEVELS.join(', ')}`)
    return text
  }),
}

/** Optional settings of type string. */
type OptionalText =
  | 'ADIT_OIDC_ISSUER'
  | 'ADIT_OIDC_CLIENT_ID'
  | 'ADIT_OIDC_CLIENT_SECRET'
  | 'ADIT_SMTP_URL'
  | 'ADIT_MAIL_FROM'

export const readConfig = (environment: NodeJS.ProcessEnv = process.env): Config =>
  requireValid(parseConfig(environment))

export function parseConfig(environment: NodeJS.ProcessEnv = process.env): Parsed<Config> {
  const { read, errors } = createReader(environment)
  /** Settings that are required together: all of them, or none. */
  const together = <N extends string>(names: Record<N, OptionalText>): Record<N, string> | undefined => {
    const all = Object.values<OptionalText>(names)
    const missing = all.filter((name) => !environment[name]?.trim())
    if (missing.length === all.length) return undefined
    const present = all.find((name) => !missing.includes(name))
    if (missing.length > 0) errors.push(`${missing.join(' and ')} must be set if ${present} is`)
    const values = Object.entries<OptionalText>(names).map(([part, name]) => [
      part,
      read<string | undefined>(name, settings[name]),
    ])
    return Object.fromEntries(values)
  }
  const sso = together({
    issuer: 'ADIT_OIDC_ISSUER',
    clientId: 'ADIT_OIDC_CLIENT_ID',
    clientSecret: 'ADIT_OIDC_CLIENT_SECRET',
  })
  const linkByEmail = read('ADIT_OIDC_LINK_BY_EMAIL', settings.ADIT_OIDC_LINK_BY_EMAIL)
  const config: Config = {
    host: read('ADIT_HOST', settings.ADIT_HOST),
    port: read('ADIT_PORT', settings.ADIT_PORT),
    baseUrl: read('ADIT_BASE_URL', settings.ADIT_BASE_URL),
    database: read('ADIT_DATABASE_URL', settings.ADIT_DATABASE_URL),
    tunnelDomain: read('ADIT_TUNNEL_DOMAIN', settings.ADIT_TUNNEL_DOMAIN),
    variant: read('ADIT_API_VARIANT', settings.ADIT_API_VARIANT),
    requestsPerMinute: read('ADIT_RATE_LIMIT', settings.ADIT_RATE_LIMIT),
    writesPerHour: read('ADIT_WRITES_PER_HOUR', settings.ADIT_WRITES_PER_HOUR),
    keysInMemory: read('ADIT_KEYS_IN_MEMORY', settings.ADIT_KEYS_IN_MEMORY),
    usageLinkGbps: read('ADIT_USAGE_LINK_GBPS', settings.ADIT_USAGE_LINK_GBPS),
    defaultQuotas: Object.freeze({
      bytes: read('ADIT_BYTES_PER_MONTH', settings.ADIT_BYTES_PER_MONTH),
      requests: read('ADIT_REQUESTS_PER_MONTH', settings.ADIT_REQUESTS_PER_MONTH),
      tunnels: read('ADIT_TUNNELS_PER_WORKSPACE', settings.ADIT_TUNNELS_PER_WORKSPACE),
      keys: read('ADIT_KEYS_PER_WORKSPACE', settings.ADIT_KEYS_PER_WORKSPACE),
    }),
    tcpPorts: { range: read('ADIT_TCP_PORTS', settings.ADIT_TCP_PORTS), ...readPortRules(read) },
    usersCreateWorkspaces: read('ADIT_WORKSPACE_CREATION', settings.ADIT_WORKSPACE_CREATION) === 'users',
    secret: read('ADIT_SECRET', settings.ADIT_SECRET),
    trustedProxies: read('ADIT_TRUSTED_PROXIES', settings.ADIT_TRUSTED_PROXIES),
    webhookPrivateNetworks: read('ADIT_WEBHOOK_PRIVATE_NETWORKS', settings.ADIT_WEBHOOK_PRIVATE_NETWORKS),
    mcpOrigins: read('ADIT_MCP_ORIGINS', settings.ADIT_MCP_ORIGINS),
    sso: sso && { ...sso, linkByEmail },
    mail: together({ url: 'ADIT_SMTP_URL', from: 'ADIT_MAIL_FROM' }),
    operatorEmail: read('ADIT_OPERATOR_EMAIL', settings.ADIT_OPERATOR_EMAIL),
    auditRetentionDays: read('ADIT_AUDIT_RETENTION_DAYS', settings.ADIT_AUDIT_RETENTION_DAYS),
    stopDelayS: read('ADIT_STOP_DELAY', settings.ADIT_STOP_DELAY),
    metrics: readMetricsAddress(read),
    workers: read('ADIT_WORKERS', settings.ADIT_WORKERS),
    logLevel: read('ADIT_LOG_LEVEL', settings.ADIT_LOG_LEVEL),
  }
  return { config, errors }
}

/** The same for an edge that assigns ports itself. */
export const readPortRules = (read: ReturnType<typeof createReader>['read']) => ({
  perWorkspace: read('ADIT_TCP_PORTS_PER_WORKSPACE', settings.ADIT_TCP_PORTS_PER_WORKSPACE),
  retentionDays: read('ADIT_TCP_PORT_RETENTION_DAYS', settings.ADIT_TCP_PORT_RETENTION_DAYS),
})

/** The same for an edge. */
export function readMetricsAddress(read: ReturnType<typeof createReader>['read']): Config['metrics'] {
  const port = read('ADIT_METRICS_PORT', settings.ADIT_METRICS_PORT)
  const host = read('ADIT_METRICS_HOST', settings.ADIT_METRICS_HOST)
  return port === undefined ? undefined : { host, port }
}
