// Exchanges as HAR 1.2, which browsers and other tools read.
import type { ExchangeSummary, Header, RecordedRequest, RecordedResponse } from '../api.ts'
import type { RecordedMessage } from '../store/exchange.ts'

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
  messages: readonly RecordedMessage[],
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

const TEXT = 1
const BINARY = 2
const CONTROL: Partial<Record<RecordedMessage['type'], number>> = { close: 8, ping: 9, pong: 10 }

/** As Chrome exports them: text as it is, the payload of all others in Base64. */
function toMessage({ from, type, ms, content, code }: RecordedMessage, startedAt: string) {
  const isText = type === 'text' && typeof content === 'string'
  return {
    type: from === 'client' ? 'send' : 'receive',
    time: (Date.parse(startedAt) + ms) / 1000,
    // Text that could not be decompressed is binary, too.
    opcode: isText ? TEXT : (CONTROL[type] ?? BINARY),
    data: isText ? content : Buffer.concat([closeCode(code), Buffer.from(content)]).toString('base64'),
  }
}

function closeCode(code: number | undefined): Buffer {
  const bytes = Buffer.alloc(code === undefined ? 0 : 2)
  if (code !== undefined) bytes.writeUInt16BE(code)
  return bytes
}
