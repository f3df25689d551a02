// `adit tunnel --serve`: an HTTP server for the files of a folder. It serves the streams of the tunnel
// directly, so that no other user of this machine can connect to it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { contentType } from './content-types.ts'
import { listingPage } from './listing-page.ts'
import { isNotModified, requestedRange } from './preconditions.ts'
import { type OpenFile, parsePath, SharedFolder } from './shared-folder.ts'

const INDEX = 'index.html'
/** The listing has inline styles, and nothing else. */
const LISTING_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

export class FileServer {
  readonly #folder: SharedFolder
  readonly #server = createServer((request, response) => this.#respond(request, response))

  /** @param root The real path of the folder. */
  constructor(root: string) {
    this.#folder = new SharedFolder(root)
  }

  serve(stream: Duplex): void {
    stream.on('error', () => undefined)
    this.#server.emit('connection', stream)
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    response.setHeader('x-content-type-options', 'nosniff')
    this.#handle(request, response).catch(() => {
      if (response.headersSent) response.destroy()
      else fail(response, 500, 'This file cannot be read.')
    })
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD')
      return fail(response, 405, 'Only GET and HEAD are supported.')
    }
    const target = request.url ?? ''
    const [path = ''] = target.split('?', 1)
    const names = path.startsWith('/') ? parsePath(path) : undefined
    const file = names && (await this.#folder.open(names))
    if (!file) return fail(response, 404, 'Not found.')
    try {
      if (!file.stats.isDirectory()) {
        if (path.endsWith('/')) return fail(response, 404, 'Not found.')
        await send(file, request, response)
      } else if (path.endsWith('/')) await this.#sendFolder(names, file, request, response)
      else redirect(response, names, target.slice(path.length))
    } finally {
      await file.handle.close().catch(() => undefined)
    }
  }

  async #sendFolder(
    names: readonly string[],
    folder: OpenFile,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const index = await this.#folder.open([...names, INDEX])
    if (index?.stats.isFile()) {
      await send(index, request, response).finally(() => index.handle.close().catch(() => undefined))
      return
    }
    await index?.handle.close()
    const page = listingPage(names, await this.#folder.list(names, folder))
    response.setHeader('content-security-policy', LISTING_POLICY)
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.setHeader('content-length', Buffer.byteLength(page))
    response.setHeader('cache-control', 'no-cache')
    response.end(page)
  }
}

function fail(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(`${message}\n`)
}

/** Builds the location from parsed names: one that begins with // would lead to another host. */
function redirect(response: ServerResponse, names: readonly string[], query: string): void {
  const location = `/${names.map((name) => `${encodeURIComponent(name)}/`).join('')}${query}`
  response.writeHead(301, { location, 'content-length': 0 }).end()
}

async function send(file: OpenFile, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { size, mtimeNs, mtime: modifiedAt } = file.stats
  const version = { etag: `"${size.toString(36)}-${mtimeNs.toString(36)}"`, modifiedAt, bytes: Number(size) }
  response.setHeader('etag', version.etag)
  response.setHeader('last-modified', modifiedAt.toUTCString())
  response.setHeader('accept-ranges', 'bytes')
  // Browsers ask each time whether the file has changed.
  response.setHeader('cache-control', 'no-cache')
  if (isNotModified(request.headers, version)) return void response.writeHead(304).end()
  const range = request.method === 'GET' ? requestedRange(request.headers, version) : undefined
  if (range === null) {
    response.setHeader('content-range', `bytes */${version.bytes}`)
    return fail(response, 416, 'The range is outside the file.')
  }
  const { start, end } = range ?? { start: 0, end: version.bytes - 1 }
  if (range) response.setHeader('content-range', `bytes ${start}-${end}/${version.bytes}`)
  response.setHeader('content-type', contentType(file.path))
  response.setHeader('content-length', end - start + 1)
  response.writeHead(range ? 206 : 200)
  if (request.method === 'HEAD' || end < start) return void response.end()
  const stream = file.handle.createReadStream({ start, end, autoClose: false })
  await pipeline(stream, exactly(end - start + 1), response)
}

/** Destroys the connection if the file shrank: its Content-Length is sent already. */
const exactly = (bytes: number) =>
  async function* (chunks: AsyncIterable<Buffer>) {
    let remaining = bytes
    for await (const chunk of chunks) {
      remaining -= chunk.length
      yield chunk
    }
    if (remaining !== 0) throw new Error('The file has changed.')
  }
