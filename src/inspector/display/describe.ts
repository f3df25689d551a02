// Exchanges as the API returns them.
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type Body,
  type Exchange,
  type ExchangeSummary,
  LIMITS,
  MASK,
  type Message,
  type MessageList,
} from '../api.ts'
import { findReplayProblem } from '../replay/problem.ts'
import type { RecordedExchange, RecordedPart } from '../store/exchange.ts'
import { describeBody } from './body-view.ts'
import { hexLines } from './hex.ts'
import type { HeaderMask } from './mask.ts'

export function describeSummary(
  exchange: RecordedExchange,
  mask: HeaderMask,
  isRevealed = false,
): ExchangeSummary {
  const { response, firstByteMs, lastByteMs, origin, problem } = exchange
  const type = response && mask.find(response.headers, 'content-type', isRevealed)
  return {
    id: exchange.id,
    tunnel: exchange.tunnel.name,
    startedAt: exchange.startedAt.toISOString(),
    kind: exchange.kind,
    state: exchange.state,
    method: exchange.method,
    path: cut(exchange.path),
    host: cut(mask.find(exchange.request.headers, 'host', isRevealed) ?? ''),
    ...(response && { status: response.status }),
    ...(type !== undefined && { contentType: cut((type.split(';', 1)[0] ?? '').trim().toLowerCase()) }),
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

/** A list has hundreds of requests, and each may have 64 KiB of headers. */
const cut = (text: string) =>
  text.length > LIMITS.listedChars ? `${text.slice(0, LIMITS.listedChars)}…` : text

/** The request and the response without their bodies. */
export function describeHeads(exchange: RecordedExchange, mask: HeaderMask, isRevealed: boolean) {
  const { request, response } = exchange
  const describePart = ({ httpVersion, headers, trailers }: RecordedPart) => ({
    httpVersion,
    headers: mask.describe(headers, isRevealed),
    trailers: mask.describe(trailers, isRevealed),
  })
  return {
    ...describeSummary(exchange, mask, isRevealed),
    path: exchange.path,
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
  const readBody = async (part: RecordedPart) => maskEncoding(await describeBody(part), mask, isRevealed)
  const request = { ...heads.request, body: await readBody(exchange.request) }
  // Streams of the tunnel get their turn between both.
  await nextTurn()
  return {
    ...heads,
    request,
    ...(response &&
      exchange.response && { response: { ...response, body: await readBody(exchange.response) } }),
    replayable: replayProblem === undefined,
    ...(replayProblem !== undefined && { replayProblem }),
    target: exchange.tunnel.target,
  }
}

/** The names of the encodings are the value of Content-Encoding. */
function maskEncoding(body: Body, mask: HeaderMask, isRevealed: boolean): Body {
  if (isRevealed || !mask.hides('content-encoding')) return body
  const { decodeProblem, ...others } = body
  return {
    ...others,
    decoded: body.decoded.map(() => MASK),
    ...(decodeProblem !== undefined && {
      decodeProblem: 'The content encoding, which is masked, could not be decoded.',
    }),
  }
}

export async function describeMessages(exchange: RecordedExchange, after: number): Promise<MessageList> {
  const { messages, messageCount } = exchange
  const dropped = messageCount - messages.length
  const described: Message[] = []
  for (const { content, ...message } of messages.filter(({ number }) => number > after)) {
    if (typeof content === 'string') described.push({ ...message, text: content })
    else {
      described.push({ ...message, text: hexLines(content) })
      // Streams of the tunnel get their turn between messages.
      await nextTurn()
    }
  }
  return { messages: described, dropped }
}
