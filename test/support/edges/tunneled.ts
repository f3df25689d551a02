// A local server whose handlers a test sets, behind a tunnel of a standalone edge.
import { createServer, type RequestListener } from 'node:http'
import { connect } from 'node:net'
import type { Test } from '../cleanup.ts'
import { listen } from '../network/listen.ts'
import { startStandaloneEdge } from './standalone-edge.ts'
import { openTunnel } from './tunnels.ts'

/** Handlers by path; a test may add and replace them. */
export type Handlers = Record<string, RequestListener>

export async function startHttp(t: Test, listener: RequestListener) {
  const server = createServer(listener)
  return { server, port: await listen(t, server) }
}

/** Requests with a path that has no handler get 200 and the path. */
const dispatch =
  (handlers: Handlers): RequestListener =>
  (request, response) => {
    const handler = handlers[request.url ?? '']
    if (handler) handler(request, response)
    else request.resume().once('end', () => response.end(request.url))
  }

export async function startTunneled(t: Test, handlers: Handlers) {
  const local = await startHttp(t, dispatch(handlers))
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  return { edge, server: local.server, tunnel, host: tunnel.host }
}

/** A connection to the edge on which the test writes and reads bytes. */
export function connectClient(port: number, bytes = '') {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let received = ''
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
  })
  socket.write(bytes)
  return {
    socket,
    received: () => received,
    /** How the server closed: `end` is a FIN, `reset` anything else. */
    closed: new Promise<'end' | 'reset'>((resolve) => {
      socket.once('end', () => resolve('end'))
      socket.once('close', () => resolve('reset'))
    }),
  }
}
