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

export function findAccess({ url, profile: name }: ApiInput): { baseUrl: string; apiKey: string } {
  const environment = clientEnvironment()
  const { current, profiles } = readProfiles()
  if (name !== undefined && !Object.hasOwn(profiles, name))
    throw new UsageError(`There is no profile "${name}". "adit profiles" lists them.`)
  const chosen: Profile | undefined = profiles[name ?? current ?? '']
  // A profile that is named outweighs the environment, as every flag does.
  const [first, second] = name === undefined ? [environment, chosen] : [chosen, environment]
  const baseUrl = url ?? first?.url ?? second?.url
  const apiKey = first?.apiKey ?? second?.apiKey
  if (apiKey === undefined) throw new NotAuthenticated(`There is no API key to use. ${LOG_IN}`)
  if (baseUrl === undefined) throw new UsageError(`It is not known where the server is. ${LOG_IN}`)
  if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? ''))
    throw new UsageError(`"${baseUrl}" is no address of a server, such as https://adit.example.com.`)
  // A key belongs to the server that it was given for: another one must not get to see it.
  if (
    url !== undefined &&
    environment.apiKey === undefined &&
    chosen &&
    originOf(chosen.url) !== originOf(url)
  )
    throw new UsageError(
      `The key of the profile is for ${chosen.url}, not for ${url}. Set ADIT_API_KEY, or run "adit login --url ${url}".`,
    )
  return { baseUrl, apiKey }
}

const originOf = (url: string) => URL.parse(url)?.origin

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
