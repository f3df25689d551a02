// Draining: requests that reached the server before it stops get their responses.
import { Server as Listener } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Idle connections stay open this long: a request may be in transit. */
const IDLE_GRACE_MS = 500
/** For requests in progress. */
const GRACE_PERIOD_MS = 20_000
const POLL_INTERVAL_MS = 20

export async function drain(server: FastifyInstance): Promise<void> {
  const { server: http } = server
  const connections = () =>
    new Promise<number>((resolve) => http.getConnections((_error, count) => resolve(count ?? 0)))
  // Only the listener: closing the HTTP server would also close connections on which a request is arriving.
  Listener.prototype.close.call(http)
  const startedAt = performance.now()
  while ((await connections()) > 0) {
    const waitedMs = performance.now() - startedAt
    if (waitedMs > GRACE_PERIOD_MS) http.closeAllConnections()
    else if (waitedMs > IDLE_GRACE_MS) http.closeIdleConnections()
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
  }
  await server.close()
}
