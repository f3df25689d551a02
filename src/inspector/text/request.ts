// What curl.ts and fetch.ts have in common.
import type { Header } from '../api.ts'

export interface TextRequest {
  readonly method: string
  /** Public URL of the tunnel. */
  readonly url: string
  /** Path and query as recorded: latin1. */
  readonly path: string
  readonly headers: readonly Header[]
  /** As recorded, without its transfer encoding. */
  readonly body: Uint8Array
}

/** Set by the client that sends the request, or by the edge. */
const OMITTED = new Set([
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
])

export const isOmitted = (name: string) => OMITTED.has(name.toLowerCase())

/** Bytes that URLs do not have are escaped. */
export const toUrl = ({ url, path }: Pick<TextRequest, 'url' | 'path'>) =>
  url.replace(/\/$/, '') +
  path.replace(
    /[^\x21-\x7e]/g,
    (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`,
  )
