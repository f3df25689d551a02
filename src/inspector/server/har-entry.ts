// Exchanges as HAR 1.2, which browsers and other tools read.
import type { ExchangeSummary, Header, Message, RecordedRequest, RecordedResponse } from '../api.ts'

interface HarExchange extends ExchangeSummary {
  readonly request: Omit<RecordedRequest, 'body'>
  readonly response?: Omit<RecordedResponse, 'body'>
}

/** The bodies without their content encoding. */
interface HarBodies {
  readonly request: HarContent
  readonly response: HarContent
}

export interface HarContent {
  readonly bytes: number
  /** Text, or Base64 if it is binary. */
  readonly text: string
  readonly isBase64: boolean
  readonly mimeType: string
}

export const harStart = (version: string) =>
  `{"log":{"version":"1.2","creator":{"name":"adit","version":${JSON.stringify(version)}},"entries":[`
export const HAR_END = ']}}\n'

export function toHarEntry(
  exchange: HarExchange,
  url: string,
  bodies: HarBodies,
  messages: readonly Message[],
) {
  const { request, response, startedAt, path, firstByteMs = 0, lastByteMs = 0 } = exchange
  const fullUrl = url.replace(/\/$/, '') + path
  return {
    startedDateTime: startedAt,
    time: lastByteMs,
    request: {
      method: exchange.method,
      url: fullUrl,
      httpVersion: `HTTP/${request.httpVersion}`,
      cookies: [],
      headers: toHeaders(request.headers),
      queryString: toQuery(path),
      headersSize: -1,
      bodySize: exchange.requestBytes,
      ...(bodies.request.bytes > 0 && { postData: toPostData(bodies.request) }),
    },
    response: {
      status: response?.status ?? 0,
      statusText: response?.reason ?? '',
      httpVersion: `HTTP/${response?.httpVersion ?? '1.1'}`,
      cookies: [],
      headers: toHeaders(response?.headers ?? []),
      content: toContent(bodies.response),
      redirectURL: findLocation(response?.headers ?? []),
      headersSize: -1,
      bodySize: exchange.responseBytes,
    },
    cache: {},
    timings: { send: 0, wait: firstByteMs, receive: Math.max(0, lastByteMs - firstByteMs) },
    _id: exchange.id,
    _tunnel: exchange.tunnel,
    ...(exchange.replayOf !== undefined && { _replayOf: exchange.replayOf }),
    ...(exchange.problem !== undefined && { comment: exchange.problem }),
    ...(exchange.kind === 'websocket' && {
      _webSocketMessages: messages.map((each) => toMessage(each, startedAt)),
    }),
  }
}

const toHeaders = (headers: readonly Header[]) => headers.map(({ name, value }) => ({ name, value }))

const findLocation = (headers: readonly Header[]) =>
  headers.find(({ name }) => name.toLowerCase() === 'location')?.value ?? ''

const toQuery = (path: string) =>
  Array.from(new URLSearchParams(path.split('?').slice(1).join('?')), ([name, value]) => ({ name, value }))

/** HAR has no encoding for what was sent. */
const toPostData = ({ mimeType, text, isBase64 }: HarContent) => ({
  mimeType,
  params: [],
  text,
  ...(isBase64 && { encoding: 'base64', comment: 'Base64 of a binary body' }),
})

const toContent = ({ bytes, mimeType, text, isBase64 }: HarContent) => ({
  size: bytes,
  mimeType,
  text,
  ...(isBase64 && { encoding: 'base64' }),
})

/** As Chrome exports them. */
const toMessage = ({ from, type, ms, text }: Message, startedAt: string) => ({
  type: from === 'client' ? 'send' : 'receive',
  time: (Date.parse(startedAt) + ms) / 1000,
  opcode: type === 'binary' ? 2 : 1,
  data: text,
})
