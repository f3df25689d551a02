// Stopping without breaking a promise: whoever got through to the server is answered.
import { Server as Listener } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** How long an open connection may stay silent: a request may be on its way on it. */
const LINGER_MS = 500
/** How long requests in flight may take to finish. */
const PATIENCE_MS = 20_000
const LOOK_EVERY_MS = 20

export async function drain(server: FastifyInstance): Promise<void> {
  const { server: http } = server
  const connections = () =>
    new Promise<number>((resolve) => http.getConnections((_error, count) => resolve(count ?? 0)))
  // The listener alone: closing the HTTP server as a whole would cut connections on which a request is arriving.
  Listener.prototype.close.call(http)
  const began = performance.now()
  while ((await connections()) > 0) {
    const waited = performance.now() - began
    if (waited > PATIENCE_MS) http.closeAllConnections()
    else if (waited > LINGER_MS) http.closeIdleConnections()
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
  await server.close()
}
