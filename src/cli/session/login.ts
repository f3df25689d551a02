// `adit login`, `adit logout` and `adit profiles`. An API key is never a flag: other users of the machine
// could read it.
import { AditError } from '../../client/index.ts'
import { createFetch } from '../../lib/net/proxy/fetch.ts'
import { readText } from '../../lib/net/response-text.ts'
import { oneLine } from '../../lib/net/untrusted-text.ts'
import { clientEnvironment, readProxies } from '../../server/config/environment.ts'
import { CONNECT_PATH } from '../../tunnel-protocol/protocol.ts'
import {
  createApiClient,
  isLoopback,
  otherProfiles,
  parseUrl,
  rejectedKey,
  requireKey,
  serverUnreachable,
  unknownProfile,
} from '../api.ts'
import { CommandError, NotAuthenticated, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { green, yellow } from '../style.ts'
import { type DeviceKey, signInWithBrowser, supportsDeviceLogin } from './device-login.ts'
import { editProfiles, type Profile, type Profiles, readProfiles } from './profiles.ts'

const NAME = /^[\w.-]{1,64}$/
const LOCAL = 'http://127.0.0.1:8080'
const PROBE_TIMEOUT_MS = 5_000
const EDGE_RESPONSE_BYTES_MAX = 4_096

interface SignedIn {
  url: string
  apiKey: string
  workspace: { slug: string; name: string }
  /** The key that was created for this machine. */
  created?: DeviceKey
}

interface LoginInput {
  server: string | undefined
  url: string | undefined
  profile: string | undefined
}

export async function login(input: LoginInput, io: Io): Promise<void> {
  if (input.server !== undefined && input.url !== undefined)
    throw new UsageError('Name the server once: as the argument, or with --url.')
  const typedUrl = input.server ?? input.url
  const { current, profiles } = readProfiles()
  const profile = input.profile ?? current ?? 'default'
  if (!NAME.test(profile))
    throw new UsageError(
      `Invalid profile name "${profile}" (expected up to 64 letters, digits, dots, hyphens and underscores).`,
    )
  const knownUrl = profiles[profile]?.url ?? clientEnvironment().url
  const { url, apiKey, workspace, created } = io.interactive
    ? await signInAtTerminal(typedUrl, knownUrl ?? LOCAL, io)
    : await signInFromPipe(typedUrl ?? knownUrl, io)
  const saved: Profile = { url, apiKey, ...(created && { keyId: created.keyId }) }
  // Applied to the current content of the file: another `adit login` may have written it meanwhile.
  await editProfiles((now) => ({ current: profile, profiles: { ...now.profiles, [profile]: saved } }))
  io.data({ profile, url, workspace: workspace.slug, current: true }, [
    green('Signed in'),
    ` to ${url}, workspace "${oneLine(workspace.name)}" (${oneLine(workspace.slug)})`,
    created ? `, approved by ${created.approvedBy}.\n` : '.\n',
    created ? `Created the personal API key "${created.label}" (${created.keyId}) for this machine.\n` : '',
    `Saved as profile "${profile}", which is now the current profile.`,
  ])
  const previous = profiles[profile]
  if (created && previous?.url === url && (await isValid(previous))) io.info(previousKeyAdvice(previous))
  if (current !== undefined && current !== profile)
    io.info(`The current profile was "${current}". To switch back, run \`adit profiles use ${current}\`.`)
  if (io.interactive) io.info('To share a local server, run `adit tunnel` with its port: `adit tunnel 3000`.')
}

const isValid = ({ url, apiKey }: Profile): Promise<boolean> =>
  createApiClient({ baseUrl: url, apiKey, retries: 0, timeoutMs: PROBE_TIMEOUT_MS })
    .workspace.read()
    .then(
      () => true,
      () => false,
    )

/** The old key is not revoked: other machines may have a copy of it, and API keys may not revoke keys. */
const previousKeyAdvice = ({ keyId }: Profile) =>
  keyId === undefined
    ? 'The previous API key of this profile stays valid. Revoke it if it is no longer used: `adit keys list`.'
    : `The previous API key of this profile stays valid. To revoke it, run \`adit keys revoke ${keyId}\`.`

async function signInFromPipe(urlText: string | undefined, io: Io): Promise<SignedIn> {
  const url = urlText === undefined ? undefined : parseUrl(urlText)
  const apiKey = await io.readLine()
  if (url === undefined || apiKey === '') {
    const missing = [
      url === undefined && 'the argument <server>',
      apiKey === '' && 'an API key on standard input',
    ]
    throw new UsageError(
      `Missing ${missing.filter(Boolean).join(' and ')}. Without a terminal, run ` +
        `\`adit login ${url ?? 'https://adit.example.com'} < key.txt\`.`,
    )
  }
  requireKey(apiKey, 'standard input')
  return { url, apiKey, workspace: await checkKey(url, apiKey) }
}

async function signInAtTerminal(urlText: string | undefined, fallback: string, io: Io): Promise<SignedIn> {
  let typed = urlText
  const { url, hasBrowserLogin } = await retryAtTerminal(io, async () => {
    const text = typed ?? ((await io.ask(`Server [${fallback}]: `)) || fallback)
    typed = undefined
    const url = parseUrl(text)
    await probe(url, text)
    return { url, hasBrowserLogin: await supportsDeviceLogin(url) }
  })
  const prompt = hasBrowserLogin ? 'Press Enter to sign in with your browser, or paste an API key' : 'API key'
  return retryAtTerminal(io, async () => {
    const typed = await io.ask(`${prompt} (not shown): `, { hidden: true })
    if (typed === '' && hasBrowserLogin) {
      const created = await signInWithBrowser(url, io)
      return { url, apiKey: created.apiKey, workspace: await checkKey(url, created.apiKey), created }
    }
    requireKey(typed, 'as typed')
    return { url, apiKey: typed, workspace: await checkKey(url, typed) }
  })
}

/** Asking the user again would not help: it was decided, or something else has to change first. */
const FINAL = ['canceled', 'access_denied', 'request_pending', 'proxy_rejected']

/** Prompts again after an error, until the attempt succeeds or the user cancels. */
async function retryAtTerminal<T>(io: Io, attempt: () => Promise<T>): Promise<T> {
  while (true) {
    try {
      return await attempt()
    } catch (error) {
      const isFinal = error instanceof CommandError && FINAL.includes(error.code)
      const isMistake =
        error instanceof CommandError || error instanceof UsageError || error instanceof NotAuthenticated
      if (isFinal || !isMistake) throw error
      io.info([yellow('!'), ` ${error.message}`])
    }
  }
}

/** Reads a public document, so that a wrong URL is noticed before the key is typed. */
async function probe(url: string, typed: string): Promise<void> {
  const client = createApiClient({ baseUrl: url, apiKey: 'none', retries: 0, timeoutMs: PROBE_TIMEOUT_MS })
  try {
    await client.description.read()
  } catch (error) {
    const failure = await toLoginError(error, url)
    const isGuessed = url.startsWith('https://') && !typed.startsWith('https://')
    if (!isGuessed || !(failure instanceof CommandError) || failure.code !== 'unreachable') throw failure
    throw new CommandError(
      'unreachable',
      `${failure.message} If the server has no TLS, enter ${url.replace('https', 'http')}.`,
    )
  }
}

/** Only a key that works is saved. */
async function checkKey(baseUrl: string, apiKey: string) {
  const client = createApiClient({ baseUrl, apiKey, retries: 1 })
  const { slug, name } = await client.workspace.read().catch(async (error) => {
    throw await toLoginError(error, baseUrl)
  })
  if (typeof slug !== 'string' || typeof name !== 'string') throw await notAditServer('unreadable', baseUrl)
  return { slug, name }
}

async function notAditServer(code: string, baseUrl: string): Promise<CommandError> {
  if (!(await isEdge(baseUrl)))
    return new CommandError(code, `${baseUrl} is not an Adit server. Check the URL; leave out /api/v1.`)
  const example = isLoopback(new URL(baseUrl)) ? LOCAL : 'https://adit.example.com'
  return new CommandError(
    'edge_url',
    `${baseUrl} is an edge. Sign in to its server, at the URL of the dashboard, e.g. ${example}. ` +
      'For an edge without a server, set ADIT_EDGE_URL and ADIT_API_KEY instead.',
  )
}

/** An edge rejects a request to open a tunnel without a WebSocket in a form that identifies it. */
async function isEdge(baseUrl: string): Promise<boolean> {
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS)
  try {
    const response = await createFetch(readProxies())(baseUrl + CONNECT_PATH, { redirect: 'manual', signal })
    const { error } = JSON.parse(await readText(response, EDGE_RESPONSE_BYTES_MAX))
    return response.status === 400 && error === 'invalid_request'
  } catch {
    return false
  }
}

async function toLoginError(error: unknown, baseUrl: string): Promise<unknown> {
  if (!(error instanceof AditError)) return error
  const { error: code } = error.fault
  if (code === 'unauthorized') return new NotAuthenticated(rejectedKey(baseUrl, error.message))
  if (code === 'not_found' || code === 'unreadable') return notAditServer(code, baseUrl)
  if (code === 'unreachable' || code === 'timed_out') return serverUnreachable(error)
  return new CommandError(code, error.message)
}

export async function logout(input: { profile: string | undefined }, io: Io): Promise<void> {
  const { current, profiles } = readProfiles()
  const name = input.profile ?? current
  if (name === undefined) throw notLoggedIn(Object.keys(profiles))
  if (!Object.hasOwn(profiles, name)) throw unknownProfile(name)
  let remaining: Profiles = { current, profiles }
  await editProfiles((now) => {
    const { [name]: _removed, ...rest } = now.profiles
    // No other profile becomes the current one: a second `adit logout` would remove it.
    remaining = { current: name === now.current ? undefined : now.current, profiles: rest }
    return remaining
  })
  io.data(
    { profile: name, current: remaining.current ?? null },
    `Removed profile "${name}" and its API key from this machine.`,
  )
  io.info('This does not revoke the key; use `adit keys revoke`.')
  const others = Object.keys(remaining.profiles)
  if (remaining.current === undefined && others.length > 0) io.info(otherProfiles(others))
}

const notLoggedIn = (others: string[]) =>
  new UsageError(['Not logged in.', ...(others.length > 0 ? [otherProfiles(others)] : [])].join(' '))

export async function list(io: Io): Promise<void> {
  const { current, profiles } = readProfiles()
  const shown = Object.entries(profiles).map(([name, { url }]) => ({ name, url, current: name === current }))
  await io.list([shown], {
    columns: {
      '': (profile) => (profile.current ? '*' : ''),
      NAME: ({ name }) => name,
      SERVER: ({ url }) => url,
    },
    empty: 'No profiles. Run `adit login` to create one.',
    shrink: ['SERVER', 'NAME'],
  })
}

export async function use(name: string, io: Io): Promise<void> {
  const { profiles } = readProfiles()
  if (!Object.hasOwn(profiles, name)) throw unknownProfile(name)
  await editProfiles((now) => ({ ...now, current: name }))
  io.data({ current: name }, `The current profile is now "${name}" (${profiles[name]?.url}).`)
}
