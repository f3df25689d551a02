// A local server whose handlers a test sets, behind a tunnel of a standalone edge.
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { atEnd, type Test } from './cleanup.ts'
import { startStandaloneEdge } from './standalone-edge.ts'
import { openTunnel } from './tunnels.ts'

/** By path; a test may add and replace them. */
export type Handlers = Record<string, RequestListener>

/** Requests with a path that has no handler get 200 and the path. */
export async function startHandlers(t: Test, handlers: Handlers) {
  const server: Server = createServer((request, response) => {
    const handler = handlers[new URL(request.url ?? '', 'http://x').pathname]
    if (handler) handler(request, response)
    else request.resume().once('end', () => response.end(request.url))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => {
    server.close()
    server.closeAllConnections()
  })
  return { server, port: (server.address() as AddressInfo).port }
}

export async function startTunneled(t: Test, handlers: Handlers) {
  const { server, port } = await startHandlers(t, handlers)
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const key = keys[0] as string
  const tunnel = await openTunnel(t, { edge, key, port, name: 'app' })
  return { edge, key, port, server, tunnel, host: tunnel.host }
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
