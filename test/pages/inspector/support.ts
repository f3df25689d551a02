// The inspector's page in a browser: `adit tunnel --inspect` with a local server of samples.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { WebSocketServer } from 'ws'
import { startInspected } from '../../inspector/support.ts'
import { openBrowser } from '../../support/browser.ts'
import type { Test } from '../../support/cleanup.ts'
import { CLIPBOARD, DESKTOP, openPage } from '../support/harness.ts'

export const SCRIPT = '<script>document.title = "hacked"</script><img src=x onerror="document.title = 1">'
/** One pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

type Respond = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

let orders = 0
const samples: Record<string, Respond> = {
  '/html': (_request, response) => response.setHeader('content-type', 'text/html').end(SCRIPT),
  '/image': (_request, response) => response.setHeader('content-type', 'image/png').end(PNG),
  '/binary': (_request, response) =>
    response.end(Buffer.from(Array.from({ length: 300 }, (_, i) => i % 256))),
  '/missing': (_request, response) => response.writeHead(404).end('There is no such page.'),
  '/error': (_request, response) => response.writeHead(500).end('Internal error'),
  '/sign-in': (_request, response) =>
    response.writeHead(204, { 'set-cookie': 'session=secret-of-the-server; HttpOnly' }).end(),
  '/json': (_request, response) => {
    const json = JSON.stringify({ items: [1, 2, 3], note: 'compressed' })
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    response.end(gzipSync(json))
  },
  '/orders': (request, response, body) => {
    orders += 1
    response.writeHead(201, { 'content-type': 'application/json', 'x-order': String(orders) })
    const { method, url } = request
    response.end(JSON.stringify({ order: orders, method, url, body: String(body) }))
  },
}

/** A local server. `/events` sends an event for each call of `sendEvent`. */
function createSamples() {
  const streams = new Set<ServerResponse>()
  const received: { url: string; body: string; authorization: string | undefined }[] = []
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    const { url = '', headers } = request
    received.push({ url, body: String(body), authorization: headers.authorization })
    const path = url.split('?', 1)[0] ?? ''
    if (path === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      streams.add(response)
    } else if (samples[path]) samples[path](request, response, body)
    else response.end(`This is ${url}.`)
  })
  new WebSocketServer({ server }).on('connection', (socket) =>
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
  )
  const sendEvent = (data: string) => {
    for (const stream of streams) stream.write(`event: tick\ndata: ${data}\n\n`)
  }
  return { server, received, sendEvent }
}

/** A tunnel with samples, and the link to its page. */
export async function startSamples(t: Test, flags: string[] = []) {
  const { server, ...local } = createSamples()
  const inspected = await startInspected(t, server, flags)
  const [, link = ''] = await inspected.tunnel.waitFor(/"event":"inspector","url":"([^"]+)"/)
  return { ...inspected, ...local, server, link }
}

/** The page in a window of its own. */
export async function openInspectorPage(t: Test, link: string, options: BrowserContextOptions = {}) {
  const context = await (await openBrowser(t)).newContext({ viewport: DESKTOP, ...CLIPBOARD, ...options })
  const { page } = await openPage(t, context)
  await page.goto(link)
  return { context, page }
}

/** Buttons of the list, each with status, method and path. */
export const rows = (page: Page) =>
  page.getByRole('region', { name: 'Requests' }).locator('button[data-request]')
export const row = (page: Page, text: string) => rows(page).filter({ hasText: text })
export const detail = (page: Page) => page.getByRole('region', { name: 'Selected request' })
export const part = (page: Page, of: 'Request' | 'Response') =>
  detail(page).getByRole('region', { name: of, exact: true })
export const body = (page: Page, of: 'Request' | 'Response') =>
  detail(page).getByRole('region', { name: `${of} body` })
