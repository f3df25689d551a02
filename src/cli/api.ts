// Selects the server and the API key: from flags, the environment or the profile, in this order.
import { AditError, type Client, type ClientOptions, createClient } from '../client/index.ts'
import { WORKSPACE_OF_KEY_ARCHIVED } from '../lib/credentials/archive.ts'
import { createFetch } from '../lib/net/proxy/fetch.ts'
import { ProxyError } from '../lib/net/proxy/tunnel.ts'
import { clientEnvironment, readProxies } from '../server/config/environment.ts'
import { CommandError, NotAuthenticated, UsageError } from './errors.ts'
import { type Profile, readProfiles } from './session/profiles.ts'
import { withCertificateAdvice } from './tunnels/certificate-advice.ts'

export interface ApiInput {
  url: string | undefined
  profile: string | undefined
}

/** The name of a profile, or undefined for ADIT_API_KEY. */
type KeySource = { profile: string } | undefined

export interface ApiAccess {
  readonly baseUrl: string
  readonly apiKey: string
  readonly keySource: KeySource
}

function findKeyAndSources(name: string | undefined) {
  const environment = clientEnvironment()
  const { current, profiles } = readProfiles()
  if (name !== undefined && !Object.hasOwn(profiles, name)) throw unknownProfile(name)
  const profileName = name ?? current ?? ''
  const chosen: Profile | undefined = profiles[profileName]
  // --profile takes precedence over the environment, as every flag does.
  const sources = name === undefined ? [environment, chosen] : [chosen, environment]
  const source = sources.find((candidate) => candidate?.apiKey !== undefined)
  if (source?.apiKey === undefined) {
    const others = Object.keys(profiles)
    const hint = others.length > 0 ? ` ${otherProfiles(others)}` : ''
    throw new NotAuthenticated(`No API key. Run \`adit login\`, or set ADIT_URL and ADIT_API_KEY.${hint}`)
  }
  const keySource: KeySource = source === chosen ? { profile: profileName } : undefined
  requireKey(source.apiKey, keySourceName(keySource))
  return { chosen, sources, apiKey: source.apiKey, keySource }
}

export const unknownProfile = (name: string) =>
  new UsageError(`No profile "${name}". Run \`adit profiles\` to list profiles.`)

/** The advice for a user without a current profile. */
export const otherProfiles = (names: string[]) =>
  `Other profiles: ${names.join(', ')}. Select one with \`adit profiles use <name>\`.`

export function findAccess({ url, profile: name }: ApiInput): ApiAccess {
  const { chosen, sources, apiKey, keySource } = findKeyAndSources(name)
  const serverUrl = url ?? sources.find((source) => source?.url !== undefined)?.url
  if (serverUrl === undefined)
    throw new UsageError('No server configured. Run `adit login`, or set ADIT_URL.')
  const baseUrl = parseUrl(serverUrl)
  // The key of a profile is sent only to the server that it was saved for.
  if (keySource && chosen && !isSameServer(baseUrl, chosen.url))
    throw new UsageError(
      `The API key of profile "${keySource.profile}" is for ${chosen.url}, not for ${baseUrl}. ` +
        `Set ADIT_API_KEY, or run \`adit login ${baseUrl}\`.`,
    )
  return { baseUrl, apiKey, keySource }
}

/** The key for calls to an edge, which need no server URL. */
export const findKey = ({ profile }: ApiInput) => findKeyAndSources(profile)

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i
const LOOPBACK = /^(localhost|[\w.-]+\.localhost|127\.[\d.]+|\[::1\])(:|\/|$)/i

/** Whether requests to this URL stay on this machine. */
export const isLoopback = ({ host }: URL): boolean => LOOPBACK.test(host)

/**
 * A URL, `host` or `host:port`. The default scheme is https, because an API key is sent; http on loopback.
 */
export function parseUrl(text: string, what = 'server'): string {
  const scheme = LOOPBACK.test(text) ? 'http://' : 'https://'
  const url = URL.parse(SCHEME.test(text) ? text : scheme + text)
  const { protocol = '', username, password, search, hash } = url ?? {}
  // The text is not repeated: it may contain a password.
  if (!url || !/^https?:$/.test(protocol) || username || password || search || hash)
    throw new UsageError(
      `Invalid URL of the ${what} (expected e.g. https://adit.example.com, without user, query or fragment).`,
    )
  return url.href.replace(/\/+$/, '')
}

const KEY_FORMAT = 'An API key is "adit_" and 49 letters and digits, without spaces.'

/** Whether it can be sent in a header. */
export const hasKeyFormat = (apiKey: string): boolean => /^[\x21-\x7e]{1,200}$/.test(apiKey)

/** The key is not part of the message. */
export function requireKey(apiKey: string, source: string): void {
  if (!hasKeyFormat(apiKey)) throw new UsageError(`Invalid API key (${source}). ${KEY_FORMAT}`)
}

/** The message of a server for a malformed key does not say what is expected. */
export const rejectedKey = (baseUrl: string, message: string) =>
  `${baseUrl} rejected the API key: ${message}${message.startsWith('Malformed') ? ` ${KEY_FORMAT}` : ''}`

export const keySourceName = (source: KeySource) => (source ? `profile "${source.profile}"` : 'ADIT_API_KEY')

const isSameServer = (a: string, b: string) => a === URL.parse(`${b}/`)?.href.replace(/\/+$/, '')

/** Uses the proxy that the environment names. */
export const createApiClient = (options: ClientOptions): Client =>
  createClient({ ...options, fetch: createFetch(readProxies()) })

/** Calls the API. Its errors become errors of the command, with advice. */
export async function withApi<T>(input: ApiInput, act: (client: Client) => Promise<T>): Promise<T> {
  const access = findAccess(input)
  const client = createApiClient(access)
  try {
    return await act(client)
  } catch (error) {
    throw error instanceof AditError ? toCommandError(error, access) : error
  }
}

/** Adds what to do, unless the message has advice about certificates. */
export function serverUnreachable({ fault, message, cause }: AditError): CommandError {
  if (cause instanceof ProxyError) return proxyFailed(cause, message)
  const advice = withCertificateAdvice(message)
  return new CommandError(
    fault.error,
    advice === message ? `${message} Check the URL, and that the server is running.` : advice,
  )
}

export const proxyFailed = ({ isFinal }: ProxyError, message: string) =>
  new CommandError(isFinal ? 'proxy_rejected' : 'unreachable', message)

function toCommandError(error: AditError, access: ApiAccess): Error {
  const { fault, message, requestId } = error
  switch (fault.error) {
    case 'unauthorized':
      return keyRejected(rejectedKey(access.baseUrl, message), access.keySource)
    case 'unreachable':
    case 'timed_out':
      return serverUnreachable(error)
    case 'invalid_request':
      return new UsageError(message.replaceAll(/\/(body|query|params)\//g, '').concat('.'))
    case 'internal':
      return new CommandError(fault.error, `The server failed. Look for request ${requestId} in its log.`)
    default:
      return new CommandError(fault.error, message)
  }
}

/** Names the source of the key, since what to do depends on it. */
export function keyRejected(message: string, source: KeySource): NotAuthenticated {
  // Another key of that workspace is rejected, too.
  if (message.includes(WORKSPACE_OF_KEY_ARCHIVED)) return new NotAuthenticated(message)
  const advice = source
    ? `run \`adit login --profile ${source.profile}\` to replace it.`
    : 'set it to a valid key, or unset it to use a profile.'
  return new NotAuthenticated(`${message} The API key is from ${keySourceName(source)}; ${advice}`)
}
