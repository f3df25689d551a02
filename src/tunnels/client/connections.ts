// The connections of a tunnel client to its edge: some to spare, and another as soon as one is used.
import { request as requestPlainly } from 'node:http'
import type { Socket } from 'node:net'
import { authorizationOf, CONNECTION_PATH, type Opened, UPGRADE } from '../protocol.ts'

const SPARE = 4
const ANSWER_WITHIN_MS = 10_000
const PROBE_AFTER_MS = 15_000
const AGAIN_AFTER_MS = 1_000

export interface ConnectionsOptions {
  readonly edge: string
  readonly opened: Opened
  /** Answers what the edge asks over a connection, and reports each request. */
  serve(socket: Socket, onRequest: () => void): void
  readonly signal: AbortSignal
  onFirst(): void
}

/** Keeps them until none is left and none can be made; says why, or throws where there never was one. */
export function keepConnections({
  edge,
  opened,
  serve,
  signal,
  onFirst,
}: ConnectionsOptions): Promise<string> {
  const { id, connections: most } = opened
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const all = new Set<Socket>()
  /** Only these are to spare: after a response the edge may still be reading it, as fast as its client takes it. */
  const unused = new Set<Socket>()
  let connecting = 0
  let wasConnected = false
  let isOver = false

  function end(why: string): void {
    if (isOver) return
    isOver = true
    for (const socket of all) socket.destroy()
    signal.removeEventListener('abort', leave)
    if (wasConnected) resolve(why)
    else reject(new Error(why))
  }
  const leave = () => end('It was closed.')

  function refill(): void {
    while (!isOver && unused.size + connecting < SPARE && all.size + connecting < most) {
      connecting += 1
      connect(edge, id).then(
        (socket) => {
          connecting -= 1
          if (isOver) socket.destroy()
          else keep(socket)
        },
        (error: Error) => {
          connecting -= 1
          // The tunnel is lost when no connection is left and none can be made.
          if (all.size > 0) setTimeout(refill, AGAIN_AFTER_MS)
          else if (connecting === 0) end(error.message)
        },
      )
    }
  }
  function keep(socket: Socket): void {
    if (!wasConnected) onFirst()
    wasConnected = true
    all.add(socket)
    unused.add(socket)
    const since = performance.now()
    socket.once('close', () => {
      const wasUsed = !unused.delete(socket)
      all.delete(socket)
      // An edge that accepts connections only to drop them is not asked for the next at once.
      if (wasUsed || performance.now() - since > AGAIN_AFTER_MS) refill()
      else setTimeout(refill, AGAIN_AFTER_MS)
    })
    serve(socket, () => {
      unused.delete(socket)
      refill()
    })
  }

  signal.addEventListener('abort', leave)
  refill()
  return promise
}

/** One connection, on which from then on the edge asks and we answer. */
async function connect(edge: string, id: string): Promise<Socket> {
  const url = new URL(edge + CONNECTION_PATH)
  const { request } = url.protocol === 'https:' ? await import('node:https') : { request: requestPlainly }
  return new Promise((resolve, reject) => {
    const asked = request(url, {
      agent: false,
      headers: { connection: 'Upgrade', upgrade: UPGRADE, authorization: authorizationOf(id) },
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    asked.on('upgrade', (_answer, socket, early) => {
      socket.setNoDelay(true)
      socket.setKeepAlive(true, PROBE_AFTER_MS)
      // What goes on as something else may end in one direction before the other.
      socket.allowHalfOpen = true
      socket.on('error', () => socket.destroy())
      if (early.length > 0) socket.unshift(early)
      resolve(socket)
    })
    asked.on('response', (answer) => {
      answer.resume()
      reject(new Error(explainRefusal(edge, answer.statusCode)))
    })
    asked.on('error', (error) =>
      reject(new Error(`The edge at ${edge} cannot be reached: ${error.message}.`)),
    )
    asked.end()
  })
}

const explainRefusal = (edge: string, status = 0) =>
  status === 404
    ? `The edge at ${edge} has closed the tunnel.`
    : `The edge at ${edge} refused a connection of the tunnel with status ${status}.`
