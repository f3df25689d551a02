// `adit keys …`: the API keys of a workspace, through the API.
import { setTimeout as sleep } from 'node:timers/promises'
import { AditError, type Client } from '../../client/index.ts'
import { type ApiInput, findAccess, keySourceName, withApi } from '../api.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { yellow } from '../style.ts'
import { printState } from './key-state.ts'

const PAGE_KEYS = 500
/** The server writes `lastUsedAt` every 3 seconds. */
const LAST_USED_TIMEOUT_MS = 4_500
const LAST_USED_POLL_MS = 300

export async function list(input: ApiInput, io: Io): Promise<void> {
  await withApi(input, (client) =>
    io.list(listPages(client), {
      columns: {
        ID: (key) => key.id,
        LABEL: (key) => key.label,
        CREATED: (key) => io.time(key.createdAt),
        'LAST USED': (key) => io.time(key.lastUsedAt),
        STATE: (key) => printState(key, io),
      },
      empty: 'No API keys.',
      shrink: ['LABEL', 'STATE'],
    }),
  )
}

async function* listPages({ tokens: { list } }: Client) {
  for (let cursor: string | undefined; ; ) {
    const { tokens } = await list({ limit: PAGE_KEYS, ...(cursor !== undefined && { cursor }) })
    yield tokens
    if (tokens.length < PAGE_KEYS) return
    cursor = tokens.at(-1)?.id
  }
}

export async function create(input: ApiInput & { label: string | undefined }, io: Io): Promise<void> {
  const key = await withApi(input, async (client) => {
    try {
      return await client.tokens.create(input.label === undefined ? {} : { label: input.label })
    } catch (error) {
      throw isNotFound(error) ? readOnlyApi('create', findAccess(input).baseUrl) : error
    }
  })
  io.info(`Created API key ${key.id}. Store it in your secret manager; it is not shown again.`)
  io.data(key, key.token)
}

export async function revoke(input: ApiInput & { id: string; yes: boolean }, io: Io): Promise<void> {
  const { id, yes } = input
  if (!yes && !io.interactive) throw new UsageError('Revoking a key cannot be undone. Confirm with --yes.')
  const revoked = await withApi(input, async (client) => {
    if (!yes) await confirm(client, input, io)
    try {
      const result = await client.tokens.revoke({ id })
      if (yes && !(await isAccepted(client))) io.warn(ownKeyRevoked(input))
      return result
    } catch (error) {
      if (!isNotFound(error)) throw error
      throw (await canManageKeys(client)) ? noActiveKey(id) : readOnlyApi('revoke', findAccess(input).baseUrl)
    }
  })
  io.data(revoked, `Revoked ${id}.`)
}

/** Whether the key of this command is accepted. Other failures say nothing about it. */
const isAccepted = (client: Client) =>
  client.workspace.read().then(
    () => true,
    (error) => !(error instanceof AditError && error.fault.error === 'unauthorized'),
  )

const ownKeyRevoked = (input: ApiInput) =>
  `That was the key of this command (${keySourceName(findAccess(input).keySource)}). Sign in with another one; ` +
  'if there is none, create it in the dashboard, or with `adit admin key create` on the server.'

const noActiveKey = (id: string) =>
  new CommandError('not_found', `No active API key ${id}. Run \`adit keys list\` to list keys.`)

async function confirm(client: Client, { id, ...input }: ApiInput & { id: string }, io: Io): Promise<void> {
  const key = await findActiveKey(client, id)
  if (!key) throw noActiveKey(id)
  if (await isOwnKey(client, id, io)) {
    const source = keySourceName(findAccess(input).keySource)
    io.info([
      yellow('Warning:'),
      ` this command itself uses that key (${source}). After revoking it, sign in with another one.`,
    ])
  }
  const name = key.label ? `"${key.label}" (${id})` : id
  const used = key.lastUsedAt ? `last used ${io.time(key.lastUsedAt)}` : 'never used'
  if (!(await io.confirm(`Revoke API key ${name}, ${used}? This cannot be undone.`)))
    throw new CommandError('canceled', 'Canceled. Nothing was revoked.')
}

async function findActiveKey(client: Client, id: string) {
  for await (const keys of listPages(client)) {
    const found = keys.find((key) => key.id === id)
    if (found) return found.revokedAt ? undefined : found
  }
  return undefined
}

/**
 * Whether this command authenticates with the key. The API does not return the key of a request, but it
 * records each use within seconds, so our own key is among those whose `lastUsedAt` changes after our own
 * request.
 */
async function isOwnKey(client: Client, id: string, io: Io): Promise<boolean> {
  const readUses = async () => {
    const { tokens } = await client.tokens.list({ limit: PAGE_KEYS })
    return new Map(tokens.flatMap((key) => (key.revokedAt ? [] : [[key.id, key.lastUsedAt] as const])))
  }
  const before = await readUses()
  if (before.size === 1) return before.has(id)
  const deadline = performance.now() + LAST_USED_TIMEOUT_MS
  io.progress('Checking which key this command uses …')
  try {
    while (performance.now() < deadline) {
      await sleep(LAST_USED_POLL_MS)
      const used = [...(await readUses())].filter(([key, at]) => at !== before.get(key))
      if (used.length > 0) return used.some(([key]) => key === id)
    }
    return false
  } finally {
    io.progress('')
  }
}

const isNotFound = (error: unknown) => error instanceof AditError && error.fault.error === 'not_found'

/** In variant B the routes do not exist, and its OpenAPI document lacks them. */
async function canManageKeys(client: Client): Promise<boolean> {
  const { paths } = (await client.description.read()) as { paths?: Record<string, object> }
  return Object.hasOwn(paths?.['/tokens'] ?? {}, 'post')
}

const readOnlyApi = (what: 'create' | 'revoke', baseUrl: string) =>
  new CommandError(
    'not_supported',
    `This server does not let API keys ${what} keys (API variant B). Admins and owners ${what} them in the ` +
      `${what === 'create' ? 'dashboard, and members request them there' : 'dashboard'}: ${baseUrl}`,
  )
