// Copies a request as text: with masked values while they are masked on the page.
import { API, type Exchange } from '../../../../src/inspector/api.ts'
import { toCurl } from '../../../../src/inspector/text/curl.ts'
import { toFetch } from '../../../../src/inspector/text/fetch.ts'
import { toUrl } from '../../../../src/inspector/text/request.ts'
import { send } from '../api.ts'

export const copyFormats = { curl: 'curl command', fetch: 'fetch call', url: 'URL' } as const
export type CopyFormat = keyof typeof copyFormats

export async function copyRequest(exchange: Exchange, url: string, format: CopyFormat): Promise<void> {
  const text = toText(exchange, url, format)
  // A promise, because Safari allows to write only in the task of the click.
  const blob = text.then((written) => new Blob([written], { type: 'text/plain' }))
  await navigator.clipboard.write([new ClipboardItem({ 'text/plain': blob })])
}

async function toText(exchange: Exchange, url: string, format: CopyFormat): Promise<string> {
  const { id, method, path, request } = exchange
  if (format === 'url') return toUrl({ url, path })
  if (request.body.cut)
    throw new Error('The body was not recorded as a whole, so the request cannot be copied.')
  const body = request.body.bytes === 0 ? new ArrayBuffer(0) : await readBody(id)
  const text = { method, url, path, headers: request.headers, body: new Uint8Array(body) }
  return format === 'curl' ? toCurl(text) : toFetch(text)
}

const readBody = async (id: string) => (await send(API.body(id, 'request'))).arrayBuffer()
