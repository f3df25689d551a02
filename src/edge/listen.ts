// The HTTP server of an edge, and its listener.
import { createServer, type Server, type ServerOptions } from 'node:http'
import { type Listener, startListener } from '../lib/net/listener.ts'
import { HEAD_BYTES_MAX } from '../tunnel-protocol/http/response-head.ts'
import type { EdgeCore } from './core.ts'
import type { EdgeOptions } from './options.ts'

const HEADERS_TIMEOUT_MS = 20_000
const IDLE_TIMEOUT_MS = 65_000
const KEEP_ALIVE_MS = 15_000

export function createEdgeServer(shouldUpgrade: ServerOptions['shouldUpgradeCallback']): Server {
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    // Uploads over slow connections may take any time; the connection guard requires progress.
    requestTimeout: 0,
    // Node counts the path, and the names and values of headers.
    maxHeaderSize: HEAD_BYTES_MAX,
    // TCP keep-alive detects clients that are gone, also while nothing is sent.
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    shouldUpgradeCallback: shouldUpgrade,
    // The router rejects such a request in its turn. Node would respond before the requests ahead of it.
    requireHostHeader: false,
  })
  // `headersError` limits the count: beyond a limit of its own, Node drops headers, which may frame the body.
  server.maxHeadersCount = 0
  return server
}

/** Listens, for other edges first. On a failure, closes what has been started. */
export async function listen(server: Server, options: EdgeOptions, core: EdgeCore): Promise<Listener> {
  const { host, port, worker } = options
  const { registry, factory, verifier, traffic, buffers, forwarding } = core
  try {
    await forwarding.start({ registry, factory, verifier, traffic, pressure: buffers })
    return await startListener(server, {
      ...{ host, port, keepAliveInitialDelay: KEEP_ALIVE_MS },
      ...(worker && { inheritedSockets: worker.sockets }),
    })
  } catch (error) {
    server.close()
    forwarding.close()
    verifier.close()
    await options.meter?.stop()
    await options.localPorts?.close()
    throw error
  }
}
