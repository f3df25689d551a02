// The settings of the server, parsed from the environment once and frozen. Only config/ reads the
// environment.
import { resolve } from 'node:path'
import { isEmail } from '../../contract/fields.ts'
import type { Variant } from '../../contract/variants.ts'
import type { DatabaseTarget } from '../store/engine/store.ts'
import { defaultPath } from './data-folder.ts'
import { createReader, type Parsed, type Read, requireValid, setting } from './setting.ts'
import {
  integer,
  nonEmpty,
  oneOf,
  readBaseUrl,
  readContact,
  readDatabaseUrl,
  readDomain,
  readNetworks,
  readOrigins,
  readPortRange,
  readQuantity,
  readSmtpUrl,
  readWorkers,
} from './values.ts'

/** The same as in package.json, which a test checks. */
export const version = '0.1.0'

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

export const settings = {
  ADIT_HOST: setting('address to listen on', '127.0.0.1', (text) => text),
  ADIT_PORT: setting('port to listen on; 0 picks a free one', '8080', integer(0, 65_535)),
  ADIT_BASE_URL: setting('public URL of the server, e.g. https://adit.example.com', '', readBaseUrl),
  ADIT_DATABASE_URL: setting(
    'sqlite:<path> or postgres://…; empty for adit.db in the data folder of the user',
    '',
    (text, environment): DatabaseTarget =>
      text === '' ? { engine: 'sqlite', path: defaultPath('adit.db', environment) } : readDatabaseUrl(text),
  ),
  ADIT_FENCING: setting(
    'operator: you fence an old PostgreSQL primary; strict: nodes stop while no standby confirms commits',
    'operator',
    oneOf('operator', 'strict'),
  ),
  ADIT_EDGE_ACKNOWLEDGMENTS: setting(
    'on: a revocation waits for edges that acknowledge changes; off: it waits for nodes only',
    'on',
    oneOf('on', 'off'),
  ),
  ADIT_TUNNEL_DOMAIN: setting('domain of all tunnels', 'localhost', readDomain),
  ADIT_API_VARIANT: setting(
    'A: API keys can create and revoke API keys; B: they can only read',
    'A',
    oneOf<Variant>('A', 'B'),
  ),
  ADIT_RATE_LIMIT: setting('requests per API key and minute, per node; empty for no limit', '', (text) =>
    text === '' ? undefined : integer(1, 1_000_000)(text),
  ),
  ADIT_WRITES_PER_HOUR: setting(
    'changes by a user or an API key per hour, per node',
    '600',
    integer(1, 1_000_000),
  ),
  ADIT_KEYS_IN_MEMORY: setting(
    'maximum number of API keys that a node caches, about 350 bytes of memory each',
    '2000000',
    integer(10, 33_000_000),
  ),
  ADIT_USAGE_LINK_GBPS: setting(
    'fastest link of any edge in Gbit/s; usage that exceeds it is rejected',
    '100',
    integer(1, 1_000),
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
    (text) => (text === '' ? null : integer(1, 1_000_000)(text)),
  ),
  ADIT_KEYS_PER_WORKSPACE: setting(
    'maximum number of active API keys per workspace',
    '1000',
    integer(1, 1_000_000),
  ),
  ADIT_TCP_PORTS: setting(
    'ports of TCP tunnels at all edges, e.g. 20000-20999; empty for none',
    '',
    readPortRange,
  ),
  ADIT_TCP_PORTS_PER_WORKSPACE: setting(
    'maximum number of ports for TCP tunnels per workspace',
    '10',
    integer(1, 1_000),
  ),
  ADIT_TCP_PORT_RETENTION_DAYS: setting(
    'days after its last use for which a port stays with its name',
    '7',
    integer(1, 3_650),
  ),
  ADIT_WORKSPACE_CREATION: setting(
    'who creates workspaces: operator, or users too, in the dashboard',
    'operator',
    oneOf('operator', 'users'),
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
  ADIT_OIDC_CLIENT_ID: setting('OIDC client ID', '', nonEmpty),
  ADIT_OIDC_CLIENT_SECRET: setting('OIDC client secret', '', nonEmpty),
  ADIT_OIDC_LINK_BY_EMAIL: setting(
    'true: a user with the verified email of an existing account is signed in to it',
    'false',
    (text) => oneOf('true', 'false')(text) === 'true',
  ),
  ADIT_SMTP_URL: setting('mail server: smtp://user:password@host:port', '', readSmtpUrl),
  ADIT_MAIL_FROM: setting('sender of mail, e.g. Adit <adit@example.com>', '', nonEmpty),
  ADIT_OPERATOR_EMAIL: setting('address for alerts to the operator, e.g. ops@example.com', '', (text) => {
    if (text !== '' && !isEmail(text)) throw new Error('must be an email address')
    return text || undefined
  }),
  ADIT_SECURITY_CONTACT: setting(
    'where to report vulnerabilities of this server, for security.txt: an https or mailto URL',
    '',
    readContact,
  ),
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
  ADIT_EXECUTABLES: setting(
    'folder with executables for /install.sh; empty for executables next to the program',
    '',
    (text) => (text === '' ? undefined : resolve(text)),
  ),
  ADIT_AUDIT_RETENTION_DAYS: setting(
    'days after which audit log entries are deleted; empty to keep them',
    '',
    (text) => (text === '' ? undefined : integer(1, 36_500)(text)),
  ),
  ADIT_STOP_DELAY: setting(
    'seconds to keep serving after SIGTERM, while /readyz already returns 503',
    '0',
    integer(0, 300),
  ),
  ADIT_METRICS_PORT: setting(
    'port of the metrics listener; 0 picks a free one, empty for none',
    '',
    (text) => (text === '' ? undefined : integer(0, 65_535)(text)),
  ),
  ADIT_METRICS_HOST: setting('address of the metrics listener', '127.0.0.1', (text) => text),
  ADIT_WORKERS: setting('processes that serve requests; auto: one for each CPU', '1', readWorkers),
  ADIT_ACCESS_LOG: setting(
    'all: a line per request; summary: failed and slow requests, the others counted per minute; off',
    'summary',
    oneOf('all', 'summary', 'off'),
  ),
  ADIT_LOG_LEVEL: setting(LOG_LEVELS.join(', '), 'info', oneOf(...LOG_LEVELS)),
}

/** Optional settings of type string. */
type OptionalText =
  | 'ADIT_OIDC_ISSUER'
  | 'ADIT_OIDC_CLIENT_ID'
  | 'ADIT_OIDC_CLIENT_SECRET'
  | 'ADIT_SMTP_URL'
  | 'ADIT_MAIL_FROM'

export type Config = Readonly<ReturnType<typeof parse>['config']>

export type ServerLimits = Config['limits']

export const readConfig = (environment: NodeJS.ProcessEnv = process.env): Config =>
  requireValid(parse(environment))

export const parseConfig = (environment: NodeJS.ProcessEnv = process.env): Parsed<Config> =>
  parse(environment)

function parse(environment: NodeJS.ProcessEnv) {
  const { read, errors } = createReader(environment, settings)
  /** Reads settings that are required together. */
  const readAllOrNone = <N extends string>(names: Record<N, OptionalText>): Record<N, string> | undefined => {
    const all = Object.values<OptionalText>(names)
    const missing = all.filter((name) => !environment[name]?.trim())
    if (missing.length === all.length) return undefined
    const present = all.find((name) => !missing.includes(name))
    if (missing.length > 0) errors.push(`${missing.join(' and ')} must be set if ${present} is`)
    const values = Object.entries<OptionalText>(names).map(([part, name]) => [part, read(name)])
    return Object.fromEntries(values)
  }
  const sso = readAllOrNone({
    issuer: 'ADIT_OIDC_ISSUER',
    clientId: 'ADIT_OIDC_CLIENT_ID',
    clientSecret: 'ADIT_OIDC_CLIENT_SECRET',
  })
  const linkByEmail = read('ADIT_OIDC_LINK_BY_EMAIL')
  const config = {
    host: read('ADIT_HOST'),
    port: read('ADIT_PORT'),
    /** Undefined: the address that the server listens on. */
    baseUrl: read('ADIT_BASE_URL'),
    database: read('ADIT_DATABASE_URL'),
    fencing: read('ADIT_FENCING'),
    edgeAcknowledgments: read('ADIT_EDGE_ACKNOWLEDGMENTS'),
    tunnelDomain: read('ADIT_TUNNEL_DOMAIN'),
    variant: read('ADIT_API_VARIANT'),
    limits: readLimits(read),
    usersCreateWorkspaces: read('ADIT_WORKSPACE_CREATION') === 'users',
    /** Undefined: a file next to the database. */
    secret: read('ADIT_SECRET'),
    trustedProxies: read('ADIT_TRUSTED_PROXIES'),
    webhookPrivateNetworks: read('ADIT_WEBHOOK_PRIVATE_NETWORKS'),
    mcpOrigins: read('ADIT_MCP_ORIGINS'),
    sso: sso && { ...sso, linkByEmail },
    mail: readAllOrNone({ url: 'ADIT_SMTP_URL', from: 'ADIT_MAIL_FROM' }),
    operatorEmail: read('ADIT_OPERATOR_EMAIL'),
    securityContact: read('ADIT_SECURITY_CONTACT'),
    /** Undefined: a folder next to the program. */
    executables: read('ADIT_EXECUTABLES'),
    stopDelayS: read('ADIT_STOP_DELAY'),
    metrics: readMetricsAddress(read),
    workers: read('ADIT_WORKERS'),
    accessLog: read('ADIT_ACCESS_LOG'),
    logLevel: read('ADIT_LOG_LEVEL'),
  }
  if (config.fencing === 'strict' && config.database?.engine === 'sqlite')
    errors.push('ADIT_FENCING=strict needs PostgreSQL')
  return { config, errors }
}

/** The services pass the limits as one object to the code that enforces them. */
const readLimits = (read: Read<typeof settings>) =>
  Object.freeze({
    requestsPerMinute: read('ADIT_RATE_LIMIT'),
    writesPerHour: read('ADIT_WRITES_PER_HOUR'),
    keysInMemory: read('ADIT_KEYS_IN_MEMORY'),
    usageLinkGbps: read('ADIT_USAGE_LINK_GBPS'),
    /** The quotas of workspaces that have none of their own; null is no limit. */
    quotas: Object.freeze({
      bytes: read('ADIT_BYTES_PER_MONTH'),
      requests: read('ADIT_REQUESTS_PER_MONTH'),
      tunnels: read('ADIT_TUNNELS_PER_WORKSPACE'),
      keys: read('ADIT_KEYS_PER_WORKSPACE'),
    }),
    tcpPorts: { range: read('ADIT_TCP_PORTS'), ...readPortRules(read) },
    auditRetentionDays: read('ADIT_AUDIT_RETENTION_DAYS'),
  })

/** An edge without a control plane assigns ports by the same rules. */
export const readPortRules = (read: Read<typeof settings>) => ({
  perWorkspace: read('ADIT_TCP_PORTS_PER_WORKSPACE'),
  retentionDays: read('ADIT_TCP_PORT_RETENTION_DAYS'),
})

/** Undefined if metrics are not served. An edge has the same settings. */
export function readMetricsAddress(read: Read<typeof settings>) {
  const port = read('ADIT_METRICS_PORT')
  const host = read('ADIT_METRICS_HOST')
  return port === undefined ? undefined : { host, port }
}
