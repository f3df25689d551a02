// Exchanges as the API returns them.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Exchange, ExchangeSummary, MessageList } from '../api.ts'
import { findHeader, type RecordedExchange, type RecordedPart } from '../store/exchange.ts'
import { describeBody } from './body-view.ts'
import type { HeaderMask } from './mask.ts'

export function describeSummary(exchange: RecordedExchange): ExchangeSummary {
  const { response, firstByteMs, lastByteMs, origin, problem } = exchange
  const type = response && findHeader(response.headers, 'content-type')
  return {
    id: exchange.id,
    tunnel: exchange.tunnel.name,
    startedAt: exchange.startedAt.toISOString(),
    kind: exchange.kind,
    state: exchange.state,
    method: exchange.method,
    path: exchange.path,
    host: findHeader(exchange.request.headers, 'host') ?? '',
    ...(response && { status: response.status }),
    ...(type !== undefined && { contentType: (type.split(';', 1)[0] ?? '').trim().toLowerCase() }),
    requestBytes: exchange.requestBytes,
    responseBytes: exchange.responseBytes,
    ...(firstByteMs !== undefined && { firstByteMs }),
    ...(lastByteMs !== undefined && { lastByteMs }),
    messages: exchange.messageCount,
    ...(origin && { replayOf: origin.replayOf }),
    ...(origin?.edited && { edited: true as const }),
    ...(problem !== undefined && { problem }),
  }
}

/** The request and the response without their bodies. */
export function describeHeads(exchange: RecordedExchange, mask: HeaderMask, isRevealed: boolean) {
  const { request, response } = exchange
  const describePart = ({ httpVersion, headers, trailers }: RecordedPart) => ({
    httpVersion,
    headers: mask.describe(headers, isRevealed),
    trailers: mask.describe(trailers, isRevealed),
  })
  return {
    ...describeSummary(exchange),
    request: describePart(request),
    ...(response && {
      response: { status: response.status, reason: response.reason, ...describePart(response) },
    }),
  }
}

export async function describeExchange(
  exchange: RecordedExchange,
  mask: HeaderMask,
  isRevealed: boolean,
): Promise<Exchange> {
  const { response, ...heads } = describeHeads(exchange, mask, isRevealed)
  const replayProblem = findReplayProblem(exchange)
  const request = { ...heads.request, body: await describeBody(exchange.request) }
  // Streams of the tunnel get their turn between both.
  await nextTurn()
  return {
    ...heads,
    request,
    ...(response &&
      exchange.response && { response: { ...response, body: await describeBody(exchange.response) } }),
    replayable: replayProblem === undefined,
    ...(replayProblem !== undefined && { replayProblem }),
    target: exchange.tunnel.target,
  }
}

/** Why the exchange cannot be replayed as it was. */
export function findReplayProblem({ kind, request }: RecordedExchange): string | undefined {
  if (kind === 'websocket') return 'A WebSocket cannot be replayed.'
  if (request.body.isCut) return 'Its body was not recorded as a whole. Replay it with a body of your own.'
  return undefined
}

export const describeMessages = (exchange: RecordedExchange, after: number): MessageList => ({
  messages: exchange.messages.filter(({ number }) => number > after),
  dropped: exchange.messageCount - exchange.messages.length,
})
