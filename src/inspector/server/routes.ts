// The routes of the API, see api.ts.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type ExchangeList,
  type Info,
  LIMITS,
  type Link,
  type ListQuery,
  type Session,
  type SessionRequest,
} from '../api.ts'
import { decodeBody } from '../display/body-view.ts'
import { describeExchange, describeMessages, describeSummary } from '../display/describe.ts'
import { InvalidQuery, matchesSearch, toTest } from '../display/filter.ts'
import type { HeaderMask } from '../display/mask.ts'
import { type Replayer, ReplayRejected } from '../replay/replayer.ts'
import { InvalidReplay } from '../replay/request-bytes.ts'
import { verifySignature } from '../signatures/verify.ts'
import type { RecordedExchange } from '../store/exchange.ts'
import type { ExchangeStore } from '../store/exchange-store.ts'
import { sendHar } from './har-export.ts'
import type { LiveEventStreams } from './live-events.ts'
import { isTrue, readListQuery, readNumber, readReplayRequest, readSignatureRequest } from './queries.ts'
import { ApiFailure, readJson, sendJson } from './responses.ts'
import type { Sessions } from './sessions.ts'

const WAIT_S_MAX = 60

export interface RouteContext {
  readonly version: string
  readonly command?: string
  readonly store: ExchangeStore
  readonly mask: HeaderMask
  readonly replayer: Replayer
  readonly sessions: Sessions
  readonly events: LiveEventStreams
  /** Undefined if there is no page. */
  createLink(): string | undefined
}

interface Call {
  readonly context: RouteContext
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly params: URLSearchParams
  /** The id of the exchange; empty for other routes. */
  readonly id: string
  readonly isLocal: boolean
}

type Route = (call: Call) => Promise<void> | void

const ROUTES: Readonly<Record<string, Route>> = {
  'GET /api/info': ({ context: { version, command, store, mask }, response }) =>
    sendJson(response, {
      version,
      ...(command !== undefined && { command }),
      tunnels: store.tunnels,
      maskedHeaders: mask.names,
      limits: LIMITS,
      exchanges: store.size,
      recordedBytes: store.bytes,
      evicted: store.evicted,
    } satisfies Info),
  'GET /api/requests': list,
  'DELETE /api/requests': ({ context, response }) => {
    context.store.clear()
    response.writeHead(204).end()
  },
  'GET /api/requests/:id': read,
  'GET /api/requests/:id/messages': async (call) => {
    const after = readNumber(call.params, 'after', 0, Number.MAX_SAFE_INTEGER) ?? 0
    sendJson(call.response, await describeMessages(find(call), after))
  },
  'GET /api/requests/:id/request/body': (call) => sendBody(call, 'request'),
  'GET /api/requests/:id/response/body': (call) => sendBody(call, 'response'),
  'POST /api/requests/:id/replay': replay,
  'POST /api/requests/:id/signature': async (call) => {
    const { scheme, secret } = readSignatureRequest(await readJson(call.request))
    sendJson(call.response, verifySignature(find(call), scheme, secret))
  },
  'GET /api/har': exportHar,
  'GET /api/events': ({ context, response }) => context.events.add(response),
  'POST /api/link': ({ context, response, isLocal }) => {
    if (!isLocal) throw new ApiFailure('not_found', 'There is no such path.')
    const url = context.createLink()
    if (url === undefined) throw new ApiFailure('not_found', 'This program has no page of the inspector.')
    sendJson(response, { url } satisfies Link)
  },
}

/** The only route of a browser that has no bearer. */
export async function openSession(
  { sessions }: RouteContext,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { token }: Partial<Record<keyof SessionRequest, unknown>> = await readJson(request)
  const bearer = typeof token === 'string' ? sessions.exchange(token) : undefined
  if (bearer === undefined)
    throw new ApiFailure(
      'token_used',
      'This link was used before, or belongs to another run. Run `adit requests link` for a new one.',
    )
  sendJson(response, { bearer } satisfies Session)
}

/** `isLocal`: by the socket of the user. */
export async function route(
  context: RouteContext,
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
  isLocal: boolean,
): Promise<void> {
  const [, start = '', id = '', rest = ''] = /^(\/api\/requests\/)([^/]+)(.*)$/.exec(url.pathname) ?? []
  const path = id === '' ? url.pathname : `${start}:id${rest}`
  const found = ROUTES[`${request.method} ${path}`]
  if (found) return found({ context, request, response, params: url.searchParams, id, isLocal })
  const isKnown = Object.keys(ROUTES).some((key) => key.endsWith(` ${path}`))
  throw isKnown
    ? new ApiFailure('method_not_allowed', 'This path does not support the method.')
    : new ApiFailure('not_found', 'There is no such path.')
}

function find({ context, id }: Call): RecordedExchange {
  const exchange = context.store.find(id)
  if (!exchange) throw new ApiFailure('not_found', 'There is no such request. Only the last ones are kept.')
  return exchange
}

const numberOf = (id: string) => Number(id.split('-')[1])

async function list({ context, response, params }: Call): Promise<void> {
  const query = readListQuery(params)
  const { limit = LIMITS.pageSizeDefault, cursor } = query
  const before = cursor === undefined ? Number.POSITIVE_INFINITY : numberOf(cursor)
  if (Number.isNaN(before)) throw new ApiFailure('invalid_request', 'Invalid "cursor".')
  const found: RecordedExchange[] = []
  const older = context.store.all().filter(({ id }) => numberOf(id) < before)
  for await (const exchange of select(context, query, older.toReversed())) {
    found.push(exchange)
    if (found.length > limit) break
  }
  const page = found.slice(0, limit)
  const last = page.at(-1)
  sendJson(response, {
    requests: page.map((each) => describeSummary(each, context.mask)),
    ...(found.length > limit && last && { nextCursor: last.id }),
  } satisfies ExchangeList)
}

async function* select(
  { mask }: RouteContext,
  query: ListQuery,
  exchanges: readonly RecordedExchange[],
): AsyncGenerator<RecordedExchange> {
  const test = readTest(query)
  for (const exchange of exchanges) {
    if (!test(exchange)) continue
    if (query.search !== undefined) {
      // Streams of the tunnel get their turn between exchanges.
      await nextTurn()
      if (!(await matchesSearch(exchange, query.search, mask))) continue
    }
    yield exchange
  }
}

function readTest(query: ListQuery): ReturnType<typeof toTest> {
  try {
    return toTest(query)
  } catch (error) {
    throw error instanceof InvalidQuery ? new ApiFailure('invalid_request', error.message) : error
  }
}

async function read(call: Call): Promise<void> {
  const { context, response, params } = call
  const exchange = find(call)
  const waitS = readNumber(params, 'wait', 0, WAIT_S_MAX) ?? 0
  if (waitS > 0) await untilComplete(context.store, exchange, waitS, response)
  sendJson(response, await describeExchange(exchange, context.mask, isTrue(params, 'reveal')))
}

function untilComplete(
  store: ExchangeStore,
  exchange: RecordedExchange,
  waitS: number,
  response: ServerResponse,
): Promise<void> {
  const isDone = () => exchange.state !== 'pending' || exchange.isEvicted
  if (isDone()) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      stop()
      resolve()
    }
    const check = () => {
      if (isDone()) end()
    }
    const stop = store.listen({ onChange: check, onEvict: check, onClear: check })
    const timer = setTimeout(end, waitS * 1000)
    response.once('close', end)
  })
}

async function sendBody(call: Call, of: 'request' | 'response'): Promise<void> {
  const part = find(call)[of]
  if (!part) throw new ApiFailure('not_found', 'There is no response.')
  const content = isTrue(call.params, 'decoded') ? (await decodeBody(part)).content : part.body.content
  call.response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="${call.id}-${of}"`,
    'content-length': content.length,
  })
  call.response.end(content)
}

async function replay(call: Call): Promise<void> {
  const edit = readReplayRequest(await readJson(call.request))
  try {
    const replayed = await call.context.replayer.replay(find(call), edit)
    sendJson(call.response, { request: describeSummary(replayed, call.context.mask) }, 202)
  } catch (error) {
    if (error instanceof InvalidReplay) throw new ApiFailure('invalid_request', error.message)
    throw error instanceof ReplayRejected ? new ApiFailure(error.code, error.message) : error
  }
}

async function exportHar({ context, response, params }: Call): Promise<void> {
  const ids = params.get('ids')?.split(',')
  const exchanges: RecordedExchange[] = []
  for await (const exchange of select(context, readListQuery(params), context.store.all()))
    if (!ids || ids.includes(exchange.id)) exchanges.push(exchange)
  await sendHar(response, exchanges, {
    mask: context.mask,
    isRevealed: isTrue(params, 'reveal'),
    version: context.version,
  })
}
