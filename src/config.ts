// The settings. This file alone reads the environment; it reports every mistake at once, then the result is frozen.
import { isIP } from 'node:net'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Variant } from './contract/variants.ts'
import { isDnsLabel } from './net/hostname.ts'
import type { Target } from './store/store.ts'

export interface Config {
  readonly host: string
  readonly port: number
  /** Where people reach the server; undefined means where it listens. */
  readonly baseUrl: string | undefined
  readonly database: Target
  readonly tunnelDomain: string
  readonly variant: Variant
  readonly requestsPerMinute: number | undefined
  readonly keysInMemory: number
  /** The fastest link that an edge has: more usage than it carries in a day is refused. */
  readonly usageLinkGbps: number
  readonly keysPerWorkspace: number
  /** Signs sessions and encrypts second factors; undefined where it is to be kept beside the database. */
  readonly secret: string | undefined
  readonly trustedProxies: readonly string[]
  /** Another identity provider to sign in at. */
  readonly sso: { issuer: string; clientId: string; clientSecret: string; linkByEmail: boolean } | undefined
  readonly mail: { url: string; from: string } | undefined
  /** For how long to go on serving after a stop was asked for. */
  readonly stopDelayS: number
  readonly logLevel: string
}

/** Of the package; in package.json too, which a test compares. */
export const version = '0.1.0'

export class ConfigError extends Error {
  override name = 'ConfigError'
}

export interface Setting<T> {
  /** What it is, for the table of settings in `--help`. */
  readonly summary: string
  readonly fallback: string
  /** Throws the reason why the text will not do. */
  read(text: string): T
}

const setting = <T>(summary: string, fallback: string, read: (text: string) => T): Setting<T> => ({
  summary,
  fallback,
  read,
})

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent']

export const settings = {
  ADIT_HOST: setting('address to listen on', '127.0.0.1', (text) => text),
  ADIT_PORT: setting('port to listen on; 0 takes any free one', '8080', (text) =>
    wholeNumber(text, 0, 65_535),
  ),
  ADIT_BASE_URL: setting('where people reach the server, e.g. https://adit.example.com', '', readBaseUrl),
  ADIT_DATABASE_URL: setting('sqlite:<path> or postgres://…', 'sqlite:./data/adit.db', readDatabaseUrl),
  ADIT_TUNNEL_DOMAIN: setting('domain under which tunnels live', 'localhost', readDomain),
  ADIT_API_VARIANT: setting('A (keys can mint and revoke keys) or B (they cannot)', 'A', (text): Variant => {
    if (text !== 'A' && text !== 'B') throw new Error('must be A or B')
    return text
  }),
  ADIT_RATE_LIMIT: setting('requests per API key and minute, on each node; empty for no limit', '', (text) =>
    text === '' ? undefined : wholeNumber(text, 1, 1_000_000),
  ),
  ADIT_KEYS_IN_MEMORY: setting(
    'how many API keys a node remembers at the most, about 250 bytes each; half as many, the latest used, for sure',
    '2000000',
    (text) => wholeNumber(text, 10, 33_000_000),
  ),
  ADIT_USAGE_LINK_GBPS: setting(
    'fastest link of any edge in Gbit/s; an edge that reports more usage than it carries in a day is refused',
    '100',
    (text) => wholeNumber(text, 1, 1_000),
  ),
  ADIT_KEYS_PER_WORKSPACE: setting('how many active API keys a workspace may have', '1000', (text) =>
    wholeNumber(text, 1, 1_000_000),
  ),
  ADIT_SECRET: setting(
    'signs sessions, the same on every node; needed with PostgreSQL, else kept beside the database',
    '',
    (text) => {
      if (text !== '' && text.length < 32)
        throw new Error('must have 32 characters or more, chosen at random')
      return text || undefined
    },
  ),
  ADIT_TRUSTED_PROXIES: setting(
    'addresses of proxies whose X-Forwarded-For counts, with commas between',
    '',
    readAddresses,
  ),
  ADIT_OIDC_ISSUER: setting('identity provider to sign in at, by OpenID Connect', '', readBaseUrl),
  ADIT_OIDC_CLIENT_ID: setting('what this server is called there', '', (text) => text || undefined),
  ADIT_OIDC_CLIENT_SECRET: setting('what it proves that with', '', (text) => text || undefined),
  ADIT_OIDC_LINK_BY_EMAIL: setting(
    'true lets whoever proves the address of an existing account there sign in to it; else false',
    'false',
    (text) => {
      if (text !== 'true' && text !== 'false') throw new Error('must be true or false')
      return text === 'true'
    },
  ),
  ADIT_SMTP_URL: setting('for mail with links: smtp://user:password@host:port', '', readSmtpUrl),
  ADIT_MAIL_FROM: setting(
    'who such mail is from, e.g. Adit <adit@example.com>',
    '',
    (text) => text || undefined,
  ),
  ADIT_STOP_DELAY: setting(
    'seconds to go on serving when told to stop, while /readyz already says so',
    '0',
    (text) => wholeNumber(text, 0, 300),
  ),
  ADIT_LOG_LEVEL: setting(LOG_LEVELS.join(', '), 'info', (text) => {
    if (!LOG_LEVELS.includes(text)) throw new Error(`must be one of ${LOG_LEVELS.join(', ')}`)
    return text
  }),
}

/** Those that are text, or absent. */
type Together =
  | 'ADIT_OIDC_ISSUER'
  | 'ADIT_OIDC_CLIENT_ID'
  | 'ADIT_OIDC_CLIENT_SECRET'
  | 'ADIT_SMTP_URL'
  | 'ADIT_MAIL_FROM'

export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const { read, mistakes } = readerOf(environment)
  /** Settings that make sense only together: all of them, or none. */
  const together = <N extends string>(names: Record<N, Together>): Record<N, string> | undefined => {
    const all = Object.values<Together>(names)
    const missing = all.filter((name) => !environment[name]?.trim())
    if (missing.length === all.length) return undefined
    const present = all.find((name) => !missing.includes(name))
    if (missing.length > 0) mistakes.push(`${missing.join(' and ')} must be set too, because ${present} is`)
    const values = Object.entries<Together>(names).map(([part, name]) => [
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
    keysInMemory: read('ADIT_KEYS_IN_MEMORY', settings.ADIT_KEYS_IN_MEMORY),
    usageLinkGbps: read('ADIT_USAGE_LINK_GBPS', settings.ADIT_USAGE_LINK_GBPS),
    keysPerWorkspace: read('ADIT_KEYS_PER_WORKSPACE', settings.ADIT_KEYS_PER_WORKSPACE),
    secret: read('ADIT_SECRET', settings.ADIT_SECRET),
    trustedProxies: read('ADIT_TRUSTED_PROXIES', settings.ADIT_TRUSTED_PROXIES),
    sso: sso && { ...sso, linkByEmail },
    mail: together({ url: 'ADIT_SMTP_URL', from: 'ADIT_MAIL_FROM' }),
    stopDelayS: read('ADIT_STOP_DELAY', settings.ADIT_STOP_DELAY),
    logLevel: read('ADIT_LOG_LEVEL', settings.ADIT_LOG_LEVEL),
  }
  refuseMistakes(mistakes)
  return Object.freeze(config)
}

/** Reads settings one by one, and gathers what is wrong with them. */
function readerOf(environment: NodeJS.ProcessEnv) {
  const mistakes: string[] = []
  const read = <T>(name: string, { fallback, read }: Setting<T>): T => {
    try {
      return read(environment[name]?.trim() || fallback)
    } catch (error) {
      mistakes.push(`${name} ${(error as Error).message}`)
      return undefined as T
    }
  }
  return { read, mistakes }
}

function refuseMistakes(mistakes: readonly string[]): void {
  if (mistakes.length > 0)
    throw new ConfigError(`The configuration has mistakes:\n  ${mistakes.join('\n  ')}`)
}

/** Those of `adit edge`. */
export const edgeSettings = {
  ADIT_EDGE_HOST: setting('address to listen on', '127.0.0.1', (text) => text),
  ADIT_EDGE_PORT: setting('port to listen on; 0 takes any free one', '8081', (text) =>
    wholeNumber(text, 0, 65_535),
  ),
  ADIT_EDGE_PUBLIC: setting(
    'how visitors reach it, where a proxy stands in front: https, or e.g. https:8443',
    '',
    readPublicly,
  ),
  ADIT_EDGE_TRUSTED_PROXIES: setting(
    'addresses or networks of proxies whose X-Forwarded-For counts, with commas between',
    '127.0.0.0/8,::1',
    readAddresses,
  ),
  ADIT_EDGE_FOLDER: setting(
    'where usage waits to be reported; each edge has its own',
    './data/edge',
    resolve,
  ),
  ADIT_EDGE_PIPENET_PORT: setting('port for stock pipenet clients; empty for none', '', (text) =>
    text === '' ? undefined : wholeNumber(text, 1, 65_535),
  ),
}

export type EdgeConfig = ReturnType<typeof readEdgeConfig>

export function readEdgeConfig(environment: NodeJS.ProcessEnv = process.env) {
  const { read, mistakes } = readerOf(environment)
  const config = {
    host: read('ADIT_EDGE_HOST', edgeSettings.ADIT_EDGE_HOST),
    port: read('ADIT_EDGE_PORT', edgeSettings.ADIT_EDGE_PORT),
    publicEndpoint: read('ADIT_EDGE_PUBLIC', edgeSettings.ADIT_EDGE_PUBLIC),
    trustedProxies: read('ADIT_EDGE_TRUSTED_PROXIES', edgeSettings.ADIT_EDGE_TRUSTED_PROXIES),
    folder: read('ADIT_EDGE_FOLDER', edgeSettings.ADIT_EDGE_FOLDER),
    pipenetPort: read('ADIT_EDGE_PIPENET_PORT', edgeSettings.ADIT_EDGE_PIPENET_PORT),
    tunnelDomain: read('ADIT_TUNNEL_DOMAIN', settings.ADIT_TUNNEL_DOMAIN),
    logLevel: read('ADIT_LOG_LEVEL', settings.ADIT_LOG_LEVEL),
    controlPlaneUrl: environment.ADIT_URL?.trim() || undefined,
    credential: environment.ADIT_EDGE_KEY?.trim() || undefined,
  }
  refuseMistakes(mistakes)
  return Object.freeze(config)
}

/** Variables that commands other than `adit serve` look at. */
const elsewhere = new Set([
  'ADIT_URL',
  'ADIT_API_KEY',
  'ADIT_EDGE_KEY',
  'ADIT_EDGE_URL',
  ...Object.keys(edgeSettings),
])

/** Variables that look like settings and are none: most likely one that was mistyped. */
export function unknownSettings(environment: NodeJS.ProcessEnv = process.env): string[] {
  return Object.keys(environment).filter(
    (name) => name.startsWith('ADIT_') && !Object.hasOwn(settings, name) && !elsewhere.has(name),
  )
}

/** A library that we use would take these for settings of its own, before those that it is given. */
export function forgetForeignSettings(environment: NodeJS.ProcessEnv = process.env): void {
  for (const name of Object.keys(environment))
    if (name.startsWith('BETTER_AUTH_') || name === 'AUTH_SECRET') delete environment[name]
}

/** Where a command finds the API, the key to it, and an edge. */
export function clientEnvironment(environment: NodeJS.ProcessEnv = process.env) {
  const { ADIT_URL, ADIT_API_KEY, ADIT_EDGE_URL } = environment
  return {
    url: ADIT_URL?.trim() || undefined,
    apiKey: ADIT_API_KEY?.trim() || undefined,
    edgeUrl: ADIT_EDGE_URL?.trim() || undefined,
  }
}

/** Under the folder for configuration of whoever runs the command (XDG). */
export function profilesPath(environment: NodeJS.ProcessEnv = process.env): string {
  const { XDG_CONFIG_HOME, HOME } = environment
  return join(XDG_CONFIG_HOME || join(HOME || homedir(), '.config'), 'adit', 'profiles.json')
}

/** npm leaves what it started behind when it is told to stop, so whoever is started by it has to notice. */
export const isStartedByNpm = (): boolean => process.env.npm_lifecycle_event !== undefined

export const isDumbTerminal = (): boolean => process.env.TERM === 'dumb'

function wholeNumber(text: string, least: number, most: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(number >= least && number <= most)) throw new Error(`must be a whole number from ${least} to ${most}`)
  return number
}

function readBaseUrl(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash || url.username || url.password)
    throw new Error('must be an http or https address without query, e.g. https://adit.example.com')
  return url.href.replace(/\/$/, '')
}

/** What is wrong is said without repeating the text, which may hold a password. */
function readDatabaseUrl(text: string): Target {
  if (text.startsWith('sqlite:')) {
    const path = text.slice('sqlite:'.length).replace(/^\/\/(?=.)/, '')
    if (path === '' || path === ':memory:') throw new Error('must name a file, e.g. sqlite:./data/adit.db')
    return { engine: 'sqlite', path: resolve(path) }
  }
  const url = /^postgres(ql)?:\/\//.test(text) ? URL.parse(text) : null
  // A socket's folder is named by a parameter instead of a host.
  if (url && (url.hostname || url.searchParams.has('host'))) return { engine: 'postgres', url: text }
  throw new Error('must be sqlite:<path> or postgres://user:password@host:port/database')
}

function readSmtpUrl(text: string): string | undefined {
  if (text === '') return undefined
  const url = URL.parse(text)
  if (!url || !/^smtps?:$/.test(url.protocol) || !url.hostname)
    throw new Error('must be smtp://host:port or smtps://host:port, with user:password@ where needed')
  return text
}

function readPublicly(text: string): { scheme: 'http' | 'https'; port: number | undefined } | undefined {
  if (text === '') return undefined
  const [, scheme, port] = /^(https?)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (scheme !== 'http' && scheme !== 'https')
    throw new Error('must be http or https, with :<port> where needed')
  return { scheme, port: port === undefined ? undefined : wholeNumber(port, 1, 65_535) }
}

function readAddresses(text: string): string[] {
  const addresses = text.split(',').flatMap((address) => address.trim() || [])
  for (const text of addresses) {
    const [address = '', bits = '0', ...rest] = text.split('/')
    const version = isIP(address)
    const most = version === 4 ? 32 : 128
    if (version === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > most || rest.length > 0)
      throw new Error('must be IP addresses, or networks such as 10.0.0.0/8, with commas between')
  }
  return addresses
}

function readDomain(text: string): string {
  if (!text.split('.').every(isDnsLabel) || text.length > 180)
    throw new Error('must be a domain name in lower case, e.g. tunnels.example.com')
  return text
}
