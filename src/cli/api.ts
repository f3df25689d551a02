// Where the API is and the key to it: a flag counts before the environment, that before a profile.
import { AditError, type Client, createClient } from '../client/index.ts'
import { clientEnvironment } from '../config.ts'
import { CommandError, NotAuthenticated, UsageError } from './errors.ts'
import { type Profile, readProfiles } from './profiles.ts'

export interface ApiInput {
  url: string | undefined
  profile: string | undefined
}

const LOG_IN = 'Run "adit login", or set ADIT_URL and ADIT_API_KEY.'

/** What there is to choose from, in the order in which it counts. */
function findSources(name: string | undefined) {
  const environment = clientEnvironment()
  const { current, profiles } = readProfiles()
  if (name !== undefined && !Object.hasOwn(profiles, name))
    throw new UsageError(`There is no profile "${name}". "adit profiles" lists them.`)
  const chosen: Profile | undefined = profiles[name ?? current ?? '']
  // A profile that is named outweighs the environment, as every flag does.
  const sources = name === undefined ? [environment, chosen] : [chosen, environment]
  const apiKey = sources.map((source) => source?.apiKey).find((key) => key !== undefined)
  if (apiKey === undefined) throw new NotAuthenticated(`There is no API key to use. ${LOG_IN}`)
  requireKey(apiKey)
  return { environment, chosen, sources, apiKey }
}

export function findAccess({ url, profile: name }: ApiInput): { baseUrl: string; apiKey: string } {
  const { environment, chosen, sources, apiKey } = findSources(name)
  const baseUrl = url ?? sources.map((source) => source?.url).find((known) => known !== undefined)
  if (baseUrl === undefined) throw new UsageError(`It is not known where the server is. ${LOG_IN}`)
  requireAddress(baseUrl)
  // A key belongs to the server that it was given for: another one must not get to see it.
  if (apiKey === chosen?.apiKey && apiKey !== environment.apiKey && !isSameServer(baseUrl, chosen.url))
    throw new UsageError(
      `The key of the profile is for ${chosen.url}, not for ${baseUrl}. Set ADIT_API_KEY, or run "adit login --url ${baseUrl}".`,
    )
  return { baseUrl, apiKey }
}

/** The key alone, where the server is not asked. */
export const findKey = ({ profile }: ApiInput): string => findSources(profile).apiKey

export function requireAddress(url: string, of = 'the server'): void {
  const { protocol = '', username, password, search, hash } = URL.parse(url) ?? {}
  // What is wrong is said without repeating the text, which may hold a password.
  if (!/^https?:$/.test(protocol) || username || password || search || hash)
    throw new UsageError(
      `The address of ${of} begins with http:// or https://, such as https://adit.example.com, and has no user, ` +
        'query or fragment.',
    )
}

export function requireKey(apiKey: string): void {
  if (!/^[\x21-\x7e]{1,200}$/.test(apiKey))
    throw new UsageError(
      'What was given as an API key cannot be one: it has spaces, line breaks or other characters in it.',
    )
}

const isSameServer = (a: string, b: string) =>
  URL.parse(`${a}/`)?.href.replace(/\/+$/, '') === URL.parse(`${b}/`)?.href.replace(/\/+$/, '')

/** Calls the API; what it refuses is said with what to do about it. */
export async function withApi<T>(input: ApiInput, act: (client: Client) => Promise<T>): Promise<T> {
  const access = findAccess(input)
  try {
    return await act(createClient(access))
  } catch (error) {
    throw error instanceof AditError ? explained(error, access.baseUrl) : error
  }
}

export function explained({ fault, message, requestId }: AditError, baseUrl: string): Error {
  switch (fault.error) {
    case 'unauthorized':
      return new NotAuthenticated(`${baseUrl} says: ${fault.message} ${LOG_IN}`)
    case 'unreachable':
    case 'timed_out':
      return new CommandError(fault.error, `${message} Is the server running, and is the address right?`)
    case 'invalid_request':
      return new UsageError(message.replaceAll(/\/(body|query|params)\//g, '').concat('.'))
    case 'internal':
      return new CommandError(fault.error, `The server failed. Its log knows this request as ${requestId}.`)
    default:
      return new CommandError(fault.error, message)
  }
}
