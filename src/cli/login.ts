// `adit login`, `adit logout` and `adit profiles`: who one is, at which server. A key is never taken from a flag, where
// everybody on the machine could read it.
import { AditError, createClient } from '../client/index.ts'
import { clientEnvironment } from '../config.ts'
import { explained, requireAddress, requireKey } from './api.ts'
import { CommandError, NotAuthenticated, UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { editProfiles, readProfiles } from './profiles.ts'
import { table } from './table.ts'

const NAME = /^[\w.-]{1,64}$/
const LOCAL = 'http://127.0.0.1:8080'

export async function login(
  given: { url: string | undefined; profile: string | undefined },
  io: Io,
): Promise<void> {
  const { current, profiles } = readProfiles()
  const name = given.profile ?? current ?? 'default'
  if (!NAME.test(name))
    throw new UsageError('The name of a profile has up to 64 letters, digits, dots, hyphens and underscores.')
  const known = profiles[name]?.url ?? clientEnvironment().url
  const url = (given.url ?? (io.interactive ? await askForUrl(io, known ?? LOCAL) : known))?.replace(
    /\/$/,
    '',
  )
  if (url === undefined) throw new UsageError('--url <address> is missing. "adit login --help" explains.')
  requireAddress(url)
  const apiKey = io.interactive
    ? await io.ask('API key (not shown): ', { hidden: true })
    : await io.readLine()
  if (apiKey === '')
    throw new UsageError('No key was given. Type it when asked, or pipe it in: adit login --url … < key')
  requireKey(apiKey)
  const { slug, name: title } = await check(url, apiKey)
  // Read once more: others may have signed in or out meanwhile.
  await editProfiles((now) => ({ current: name, profiles: { ...now.profiles, [name]: { url, apiKey } } }))
  io.data(
    { profile: name, url, workspace: slug },
    `Signed in at ${url} to the workspace "${title}" (${slug}), as the profile "${name}".`,
  )
}

async function askForUrl(io: Io, fallback: string): Promise<string> {
  return (await io.ask(`Address of the server [${fallback}]: `)) || fallback
}

/** Only a key that works is worth keeping. */
async function check(baseUrl: string, apiKey: string) {
  try {
    return await createClient({ baseUrl, apiKey, retries: 1 }).workspace.read()
  } catch (error) {
    if (!(error instanceof AditError)) throw error
    const { error: code } = error.fault
    if (code === 'unauthorized') throw new NotAuthenticated(`${baseUrl} says: ${error.message}`)
    if (code === 'not_found' || code === 'unreadable')
      throw new CommandError(
        code,
        `There is no Adit at ${baseUrl}. Give the address of the server itself, without /api/v1.`,
      )
    throw explained(error, baseUrl)
  }
}

export async function logout(given: { profile: string | undefined }, io: Io): Promise<void> {
  const { current, profiles } = readProfiles()
  const name = given.profile ?? current
  if (name === undefined || !Object.hasOwn(profiles, name))
    throw new UsageError(name ? `There is no profile "${name}".` : 'There is no profile to sign out of.')
  let next: string | undefined
  await editProfiles((now) => {
    const { [name]: _gone, ...rest } = now.profiles
    next = name === now.current ? Object.keys(rest)[0] : now.current
    return { current: next, profiles: rest }
  })
  io.data(
    { profile: name, current: next ?? null },
    `Removed the profile "${name}" and its key from this machine.`,
  )
  io.info(
    'The key itself is still good: revoke it with "adit keys revoke" or in the dashboard where it should not be.',
  )
}

export async function list(io: Io): Promise<void> {
  const { current, profiles } = readProfiles()
  const shown = Object.entries(profiles).map(([name, { url }]) => ({ name, url, current: name === current }))
  const rows = shown.map((one) => [one.current ? '*' : '', one.name, one.url])
  io.data(shown, table(['', 'NAME', 'SERVER'], rows))
}

export async function use(name: string, io: Io): Promise<void> {
  const { profiles } = readProfiles()
  if (!Object.hasOwn(profiles, name))
    throw new UsageError(`There is no profile "${name}". "adit profiles" lists them.`)
  await editProfiles((now) => ({ ...now, current: name }))
  io.data({ current: name }, `Commands now use the profile "${name}".`)
}
