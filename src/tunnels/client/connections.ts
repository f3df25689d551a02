// The connection pool of a tunnel client: keeps spare connections to the edge, and adds one as soon as one is
// used.
import { request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { CONNECTION_PATH, formatAuthorization, type Opened, UPGRADE } from '../protocol.ts'

const SPARE_CONNECTIONS = 4
const CONNECT_TIMEOUT_MS = 10_000
const KEEP_ALIVE_MS = 15_000
const RETRY_DELAY_MS = 1_000

export interface ConnectionsOptions {
  readonly edge: string
  readonly opened: Opened
  /** Handles the requests of the edge on a connection. `onRequest` is called with each. */
  serve(socket: Socket, onRequest: () => void): void
  readonly signal: AbortSignal
  onFirst(): void
}

/**
 * Resolves with the reason when all connections are lost and none can be made. Rejects if there never was
 * one.
 */
export function maintainConnections({
  edge,
  opened,
  serve,
  signal,
  onFirst,
}: ConnectionsOptions): Promise<string> {
  const { secret, connections: max } = opened
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const sockets = new Set<Socket>()
  /**
   * Only unused connections are spare: after a response the edge may still be reading it at its client's
   * pace.
   */
  const spare = new Set<Socket>()
  let connecting = 0
  let wasConnected = false
  let isClosed = false

  function close(reason: string): void {
    if (isClosed) return
    isClosed = true
    for (const socket of sockets) socket.destroy()
    signal.removeEventListener('abort', onAbort)
    if (wasConnected) resolve(reason)
    else reject(new Error(reason))
  }
  const onAbort = () => close('The tunnel was closed.')

  function refill(): void {
    while (!isClosed && spare.size + connecting < SPARE_CONNECTIONS && sockets.size + connecting < max) {
      connecting += 1
      connect(edge, secret).then(
        (socket) => {
          connecting -= 1
          if (isClosed) socket.destroy()
          else add(socket)
        },
        (error: Error) => {
          connecting -= 1
          // The tunnel is lost when no connection is left and none can be made.
          if (sockets.size > 0) setTimeout(refill, RETRY_DELAY_MS)
          else if (connecting === 0) close(error.message)
        },
      )
    }
  }
  function add(socket: Socket): void {
    if (!wasConnected) onFirst()
    wasConnected = true
    sockets.add(socket)
    spare.add(socket)
    const connectedAt = performance.now()
    socket.once('close', () => {
      const wasUsed = !spare.delete(socket)
      sockets.delete(socket)
      // Delays the next attempt if the edge accepts connections only to drop them.
      if (wasUsed || performance.now() - connectedAt > RETRY_DELAY_MS) refill()
      else setTimeout(refill, RETRY_DELAY_MS)
    })
    serve(socket, () => {
      spare.delete(socket)
      refill()
    })
  }

  signal.addEventListener('abort', onAbort)
  refill()
  return promise
}

/** Opens a connection by an HTTP upgrade. Afterwards the edge sends requests over it. */
async function connect(edge: string, secret: string): Promise<Socket> {
  const url = new URL(edge + CONNECTION_PATH)
  const { request } = url.protocol === 'https:' ? await import('node:https') : { request: httpRequest }
  return new Promise((resolve, reject) => {
    const upgrade = request(url, {
      agent: false,
      headers: { connection: 'Upgrade', upgrade: UPGRADE, authorization: formatAuthorization(secret) },
      signal: AbortSignal.timeout(CONNECT_TIMEOUT_MS),
    })
    upgrade.on('upgrade', (_response, socket, head) => {
      socket.setNoDelay(true)
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
      // Upgraded protocols may close one direction before the other.
      socket.allowHalfOpen = true
      socket.on('error', () => socket.destroy())
      if (head.length > 0) socket.unshift(head)
      resolve(socket)
    })
    upgrade.on('response', (response) => {
      response.resume()
      reject(new Error(rejectionMessage(edge, response.statusCode)))
    })
    upgrade.on('error', (error) =>
      reject(new Error(`The edge at ${edge} cannot be reached: ${error.message}.`)),
    )
    upgrade.end()
  })
}

const rejectionMessage = (edge: string, status = 0) =>
  status === 404
    ? `The edge at ${edge} closed the tunnel.`
    : `The edge at ${edge} rejected a tunnel connection (HTTP ${status}).`
