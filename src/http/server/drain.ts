// Draining: requests on accepted connections get their responses before the server stops.
import { Server as Listener } from 'node:net'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

/** Idle connections stay open this long: a request may be in transit, and a client may use them again. */
const IDLE_GRACE_MS = { stop: 500, replace: 5_000 }
/** For requests in progress. */
const GRACE_PERIOD_MS = 20_000
const POLL_INTERVAL_MS = 20

/** `replace`: another process already listens on the same port, so nobody waits for the end of this one. */
export async function drain(server: FastifyInstance, reason: 'stop' | 'replace'): Promise<void> {
  const { server: http } = server
  const connections = () =>
    new Promise<number>((resolve) => http.getConnections((_error, count) => resolve(count ?? 0)))
  // Only the listener: closing the HTTP server would also close connections on which a request is arriving.
  Listener.prototype.close.call(http)
  const startedAt = performance.now()
  while ((await connections()) > 0) {
    await sleep(POLL_INTERVAL_MS)
    // Reads what has arrived: a connection with a request that was not read yet would count as idle.
    await setImmediate()
    const waitedMs = performance.now() - startedAt
    if (waitedMs > GRACE_PERIOD_MS) http.closeAllConnections()
    else if (waitedMs > IDLE_GRACE_MS[reason]) http.closeIdleConnections()
  }
  await server.close()
}
