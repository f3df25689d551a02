import { AditError, type Client } from '../client/index.ts'
import { type ApiInput, findAccess, withApi } from './api.ts'
import { CommandError, UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { printState } from './key-state.ts'

const PAGE_KEYS = 500

export async function list(input: ApiInput, io: Io): Promise<void> {
  await withApi(input, (client) =>
    io.list(pagesOf(client), {
      ID: (key) => key.id,
      LABEL: (key) => key.label,
      CREATED: (key) => key.createdAt,
      'LAST USED': (key) => key.lastUsedAt ?? 'never',
      STATE: printState,
    }),
  )
}

async function* pagesOf({ tokens: { list } }: Client) {
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
      throw isNotFound(error) ? onlyPeople('create', findAccess(input).baseUrl) : error
    }
  })
  io.info(`Minted ${key.id}. Save the key: it is not shown again.`)
  io.data(key, key.token)
}

export async function revoke(input: ApiInput & { id: string; yes: boolean }, io: Io): Promise<void> {
  const { id, yes } = input
  if (!yes && !io.interactive) throw new UsageError('Revoking is for good. Confirm it with --yes.')
  const revoked = await withApi(input, async (client) => {
    if (!yes && !(await confirm(client, id, io))) return undefined
    try {
      return await client.tokens.revoke({ id })
    } catch (error) {
      if (!isNotFound(error)) throw error
      if (!(await canManageKeys(client))) throw onlyPeople('revoke', findAccess(input).baseUrl)
      throw new CommandError(
        'not_found',
        `There is no active key ${id}. "adit keys list" shows which there are.`,
      )
    }
  })
  if (revoked) io.data(revoked, `Revoked ${id}.`)
  else throw new CommandError('not_confirmed', 'Nothing was revoked.')
}

async function confirm(client: Client, id: string, io: Io): Promise<boolean> {
  const label = await findLabel(client, id)
  const name = label ? `"${label}" (${id})` : id
  return /^y(es)?$/i.test(await io.ask(`Revoke the key ${name}, for good and at once? [y/N] `))
}

async function findLabel(client: Client, id: string): Promise<string | undefined> {
  for await (const keys of pagesOf(client)) {
    const found = keys.find((key) => key.id === id)
    if (found) return found.label
  }
  return undefined
}

const isNotFound = (error: unknown) => error instanceof AditError && error.fault.error === 'not_found'

/** In variant B the routes do not exist, which its description tells. */
async function canManageKeys(client: Client): Promise<boolean> {
  const { paths } = (await client.description.read()) as { paths?: Record<string, object> }
  return Object.hasOwn(paths?.['/tokens'] ?? {}, 'post')
}

const onlyPeople = (what: string, baseUrl: string) =>
  new CommandError(
    'not_supported',
    `On this server keys cannot ${what} keys (variant B of the API). An admin or owner does it in the dashboard: ${baseUrl}`,
  )
