// The listener for metrics, apart from the public one: GET /metrics in the text format of Prometheus.
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { framingRule } from '../http/request-framing.ts'
import { listenUrl } from '../net/listen-url.ts'

const http = process.getBuiltinModule('node:http')

const REQUEST_TIMEOUT_MS = 10_000
/** Longer than common scrape intervals. */
const KEEP_ALIVE_MS = 65_000
const CONNECTIONS_MAX = 50

/** A registry of prom-client, or several of them combined. */
export interface MetricsSource {
  readonly contentType: string
  metrics(): Promise<string>
}

export interface MetricsListener {
  readonly url: string
  stop(): Promise<void>
}

export async function startMetricsListener(
  { host, port }: { readonly host: string; readonly port: number },
  source: MetricsSource,
  onFailure: (error: unknown) => void,
): Promise<MetricsListener> {
  let scrape: Promise<string> | undefined
  /** Concurrent scrapes share one result. */
  const render = () => {
    scrape ??= source.metrics().finally(() => {
      scrape = undefined
    })
    return scrape
  }
  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (framingRule(request)) return void response.writeHead(400, { connection: 'close' }).end()
    const { method, url = '' } = request
    const isKnown = (method === 'GET' || method === 'HEAD') && url.split('?', 1)[0] === '/metrics'
    if (!isKnown) return void response.writeHead(404).end()
    const body = await render()
    response.writeHead(200, {
      'content-type': source.contentType,
      'content-length': Buffer.byteLength(body),
    })
    response.end(method === 'HEAD' ? undefined : body)
  }
  const server = http.createServer(
    {
      headersTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => {
      respond(request, response).catch((error) => {
        onFailure(error)
        response.writeHead(500).end()
      })
    },
  )
  limitConnections(server)
  server.listen(port, host)
  await once(server, 'listening')
  // Accepting can fail, e.g. because of too many open files; an unhandled event would end the process.
  server.on('error', onFailure)
  return {
    url: `${listenUrl(host, server.address() as AddressInfo)}/metrics`,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/**
 * Closes the connection that has been idle for longest, so that clients which only connect cannot prevent
 * scrapes.
 */
function limitConnections(server: Server): void {
  const idle = new Set<Socket>()
  let count = 0
  server.on('connection', (socket: Socket) => {
    count += 1
    idle.add(socket)
    socket.once('close', () => {
      count -= 1
      idle.delete(socket)
    })
    if (count <= CONNECTIONS_MAX) return
    const [oldest = socket] = idle
    idle.delete(oldest)
    oldest.destroy()
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    response.once('close', () => {
      if (!socket.destroyed) idle.add(socket)
    })
  })
}
