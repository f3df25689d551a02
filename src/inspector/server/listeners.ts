// The two listeners of the API: a port of 127.0.0.1 for the page, and a socket of the user for programs.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { isFromPage } from './browser-guard.ts'
import { type PageFiles, sendPageFile } from './page.ts'
import { ApiFailure, SECURITY_HEADERS, sendFailure } from './responses.ts'
import { openSession, type RouteContext, route } from './routes.ts'

const PORT = 4040
/** Then the system chooses one. */
const PORTS_TRIED = 20
const CONNECTIONS_MAX = 200
/** Every user of the machine can connect to the port: connections without a request are soon closed. */
const TIMEOUTS = { headersTimeout: 3_000, requestTimeout: 5_000, connectionsCheckingInterval: 500 }

type Respond = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void>

/** Resolves with the port. */
export async function listenForPage(server: Server): Promise<number> {
  for (let port = PORT; ; port += 1) {
    const address = await listen(server, { host: '127.0.0.1', port: port < PORT + PORTS_TRIED ? port : 0 })
    if (typeof address === 'number') return address
  }
}

/** Resolves with undefined if the port is in use. */
function listen(server: Server, options: { host: string; port: number }): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' || error.code === 'EACCES' ? resolve(undefined) : reject(error)
    server.once('error', onError)
    server.listen({ ...options, exclusive: true }, () => {
      server.off('error', onError)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : undefined)
    })
  })
}

/** For browsers: only the page itself gets responses, and the API only with a bearer. */
export const createPageServer = (context: RouteContext, files: PageFiles): Server =>
  create(async (request, response, url) => {
    const isApi = url.pathname.startsWith('/api/')
    const port = request.socket.localPort ?? 0
    if (!isFromPage(request.headers, port, isApi)) return void response.writeHead(403).end()
    if (!isApi) return sendFile(request, response, url, files)
    if (`${request.method} ${url.pathname}` === 'POST /api/session')
      return openSession(context, request, response)
    if (!context.sessions.accepts(request.headers.authorization))
      throw new ApiFailure('unauthorized', 'Open the link that `adit tunnel` has printed.')
    return route(context, request, response, url, false)
  })

/** Only the user can connect to the socket. */
export const createLocalServer = (context: RouteContext): Server =>
  create((request, response, url) => route(context, request, response, url, true))

async function sendFile(
  { method }: IncomingMessage,
  response: ServerResponse,
  { pathname }: URL,
  files: PageFiles,
): Promise<void> {
  if (method !== 'GET') throw new ApiFailure('method_not_allowed', 'This path supports GET.')
  if (!(await sendPageFile(response, files, pathname)))
    throw new ApiFailure('not_found', 'There is no such path.')
}

function create(respond: Respond): Server {
  const server = createServer(TIMEOUTS, (request, response) => {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value)
    handle(request, response, respond).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy()
      sendFailure(
        response,
        error instanceof ApiFailure ? error : new ApiFailure('internal', 'The request failed.'),
      )
    })
  })
  server.maxConnections = CONNECTIONS_MAX
  return server
}

async function handle(request: IncomingMessage, response: ServerResponse, respond: Respond): Promise<void> {
  const { url: target = '' } = request
  const url = target.startsWith('/') ? URL.parse(`http://127.0.0.1${target}`) : null
  if (!url) throw new ApiFailure('not_found', 'There is no such path.')
  await respond(request, response, url)
}
