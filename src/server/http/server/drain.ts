// Draining: requests on accepted connections get their responses before the server stops.
import type { Server } from 'node:http'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import type { Listener } from '../../../lib/net/listener.ts'

/** Idle connections stay open this long: a request may be in transit, and a client may use them again. */
const IDLE_GRACE_MS = { stop: 500, replace: 5_000 }
/** Requests in progress have this long to complete. */
const GRACE_PERIOD_MS = 20_000
const POLL_INTERVAL_MS = 20

/** `replace`: another process already listens on the same port, so this one may take longer. */
export async function drain(server: Server, listener: Listener, reason: 'stop' | 'replace'): Promise<void> {
  await listener.close()
  const startedAt = performance.now()
  while (listener.connectionCount() > 0) {
    await sleep(POLL_INTERVAL_MS)
    // Reads what has arrived: a connection with a request that was not read yet would count as idle.
    await setImmediate()
    const waitedMs = performance.now() - startedAt
    if (waitedMs > GRACE_PERIOD_MS) server.closeAllConnections()
    else if (waitedMs > IDLE_GRACE_MS[reason]) server.closeIdleConnections()
  }
  // Stops the timers of the server.
  server.close()
}
