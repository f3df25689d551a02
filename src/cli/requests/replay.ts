// `adit requests replay`: sends a recorded request to the local server again, as it was or edited.
import { readFile } from 'node:fs/promises'
import {
  API,
  type Exchange,
  type Replayed,
  type ReplayHeader,
  type ReplayRequest,
} from '../../inspector/api.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { findExchange, withQuery } from './recorders.ts'
import { describe } from './show.ts'

const WAIT_S = 60

interface ReplayInput {
  id: string | undefined
  method: string | undefined
  path: string | undefined
  header: string[]
  'remove-header': string[]
  body: string | undefined
  'body-file': string | undefined
  reveal: boolean
}

export async function replay(input: ReplayInput, io: Io): Promise<void> {
  const { recorder, exchange } = await findExchange(input.id)
  const edit = await toEdit(input, exchange)
  const { request } = await recorder.call<Replayed>('POST', API.replay(exchange.id), edit)
  const query = { wait: String(WAIT_S), reveal: input.reveal ? 'true' : undefined }
  const replayed = await recorder.call<Exchange>('GET', withQuery(API.request(request.id), query))
  if (replayed.state === 'pending')
    io.warn(`There is no complete response yet. See \`adit requests show ${replayed.id}\`.`)
  io.data(replayed, describe(replayed, []))
}

export async function toEdit(
  input: Omit<ReplayInput, 'id' | 'reveal'>,
  exchange: Exchange,
): Promise<ReplayRequest> {
  const { method, path, header, body, 'body-file': file, 'remove-header': removed } = input
  if (body !== undefined && file !== undefined) throw new UsageError('Use --body or --body-file, not both.')
  const content = file === undefined ? undefined : await readBody(file)
  return {
    ...(method !== undefined && { method }),
    ...(path !== undefined && { path }),
    ...(header.length + removed.length > 0 && { headers: toHeaders(header, removed, exchange) }),
    ...(body !== undefined && { body: { text: body } }),
    ...(content && { body: { base64: content.toString('base64') } }),
  }
}

/** A header replaces the recorded ones of the same name. */
function toHeaders(texts: string[], removed: string[], { request }: Exchange): ReplayHeader[] {
  const added = texts.map((text) => {
    const colon = text.indexOf(':')
    if (colon < 1) throw new UsageError(`Invalid --header "${text}" (expected "Name: value").`)
    return { name: text.slice(0, colon), value: text.slice(colon + 1).trim() }
  })
  const replaced = new Set([...removed, ...added.map(({ name }) => name)].map((name) => name.toLowerCase()))
  const kept = request.headers.flatMap(({ name }, recorded) =>
    replaced.has(name.toLowerCase()) ? [] : [{ name, recorded }],
  )
  return [...kept, ...added]
}

const readBody = (file: string) =>
  readFile(file).catch((error: Error) => {
    throw new UsageError(`Cannot read --body-file: ${error.message}.`)
  })
