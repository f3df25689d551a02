// Starts a server of a test on a free port.
import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { atEnd, type Test } from '../cleanup.ts'

/** Resolves to the port. The server is closed after the test, and its connections with it. */
export async function listen(t: Test, server: Server, port = 0, host = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(port, host)
  await once(server, 'listening')
  atEnd(t, () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}
