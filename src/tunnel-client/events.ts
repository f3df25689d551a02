// Parses the events of the edge: JSON objects, one per line.
import type { Readable } from 'node:stream'
import { toRequestProblem } from '../tunnel-protocol/problems.ts'
import {
  EVENT_BYTES_MAX,
  type Opened,
  type ProxiedConnection,
  type ProxiedRequest,
  type TunnelClosure,
} from '../tunnel-protocol/protocol.ts'

const LF = 0x0a
const EMPTY = Buffer.alloc(0)
const EDGES_MAX = 10

export interface EventHandlers {
  onOpen(opened: Opened): void
  onRequest(request: ProxiedRequest): void
  onConnection(connection: ProxiedConnection): void
  onNotice(message: string): void
  /** Other edges have appeared. */
  onOtherEdges(urls: readonly string[]): void
  /** The edge asks for an extra connection. */
  onConnectionRequested(): void
  onClose(closure: TunnelClosure): void
}

/** Events that are unknown, malformed or too long are ignored. */
export function readEvents(stream: Readable, handlers: EventHandlers): void {
  let line: Buffer = EMPTY
  stream.on('data', (chunk: Buffer) => {
    let start = 0
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      line = append(line, chunk.subarray(start, end))
      if (line.length <= EVENT_BYTES_MAX) handle(line, handlers)
      line = EMPTY
      start = end + 1
    }
    line = append(line, chunk.subarray(start))
  })
}

/** Keeps one byte more than the limit, which marks a line that is too long. */
function append(line: Buffer, more: Buffer): Buffer {
  if (line.length === 0) return more.subarray(0, EVENT_BYTES_MAX + 1)
  if (line.length > EVENT_BYTES_MAX) return line
  return Buffer.concat([line, more.subarray(0, EVENT_BYTES_MAX + 1 - line.length)])
}

type Fields = Readonly<Record<string, unknown>>

function handle(line: Buffer, handlers: EventHandlers): void {
  const { onOpen, onRequest, onConnection, onNotice, onOtherEdges, onConnectionRequested, onClose } = handlers
  const fields = parse(line)
  if (fields?.event === 'open') {
    const { type, url, host, name, access, edge, edges } = fields as unknown as Opened
    if (type !== 'http' && type !== 'tcp') return
    if (areStrings(url, host, name) && isAddress(url))
      onOpen({ type, url, host, name, ...(access && { access: toAccess(access) }), ...toEdges(edge, edges) })
  } else if (fields?.event === 'request') {
    const { method, path, status, bytesIn, bytesOut, ms } = fields as unknown as ProxiedRequest
    if (areStrings(method, path) && areNumbers(status, bytesIn, bytesOut, ms))
      onRequest({ method, path, status, bytesIn, bytesOut, ms, ...toRequestProblem(fields) })
  } else if (fields?.event === 'connection') {
    const { bytesIn, bytesOut, ms } = fields as unknown as ProxiedConnection
    if (areNumbers(bytesIn, bytesOut, ms)) onConnection({ bytesIn, bytesOut, ms })
  } else if (fields?.event === 'notice') {
    const { message } = fields as { message: string }
    if (areStrings(message)) onNotice(message)
  } else if (fields?.event === 'edges') {
    const { edges } = toEdges(undefined, fields.edges)
    if (edges) onOtherEdges(edges)
  } else if (fields?.event === 'connect') onConnectionRequested()
  else if (fields?.event === 'close') {
    const { reason, message } = fields as unknown as TunnelClosure
    if (areStrings(reason, message)) onClose({ reason, message })
  }
}

const toAccess = ({ basicAuth, allowIp }: NonNullable<Opened['access']>) => ({
  basicAuth: basicAuth === true,
  allowIp: allowIp === true,
})

/** URLs that are not strings are ignored; the others are validated before a connection is opened. */
const toEdges = (edge: unknown, edges: unknown): Pick<Opened, 'edge' | 'edges'> => ({
  ...(typeof edge === 'string' && { edge }),
  ...(Array.isArray(edges) && {
    edges: edges.filter((each) => typeof each === 'string').slice(0, EDGES_MAX),
  }),
})

function parse(line: Buffer): Fields | undefined {
  try {
    const value: unknown = JSON.parse(line.toString())
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined
  } catch {
    return undefined
  }
}

/** They are shown to the user, so they must not contain line breaks or other control characters. */
const areStrings = (...values: unknown[]) =>
  values.every((value) => typeof value === 'string' && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(value))
/** Scripts may open the URL, so only the schemes of web pages and TCP tunnels are accepted. */
const isAddress = (url: string) => /^(https?|tcp):\/\/[a-z0-9.-]{1,253}(:\d{1,5})?\/?$/i.test(url)
const areNumbers = (...values: unknown[]) => values.every((value) => typeof value === 'number')
