// The port that all workers listen on. The primary binds the sockets and the workers inherit them: they stay
// open while one worker replaces another, so no connection that waits in their queues is reset.
import * as net from 'node:net'
import { isReusePortUnsupported, probe, SOCKETS } from '../lib/net/listener.ts'

export interface Port {
  /** Binds the sockets of a worker. They get connections when the worker listens on them. */
  open(): PortSockets
}

export interface PortSockets {
  readonly fds: readonly number[]
  /** Closes the primary's copies; a worker keeps those that it has inherited. */
  close(): void
}

/**
 * Undefined if a port cannot have several sockets; then the cluster module passes the connections to the
 * workers. Rejects if another program listens on the port.
 */
export async function reservePort(host: string, requested: number): Promise<Port | undefined> {
  // Node before 26.4 does not have the class.
  if (!net.BoundSocket) return undefined
  const { address } = await probe({ host, port: requested })
  const bind = (port: number) => new net.BoundSocket({ host: address, port, reusePort: true })
  try {
    // This socket never listens. It reserves the port while no worker has sockets.
    const { port } = bind(requested).address()
    return { open: () => bindSockets(() => bind(port)) }
  } catch (error) {
    if (isReusePortUnsupported(error)) return undefined
    throw error
  }
}

function bindSockets(bind: () => net.BoundSocket): PortSockets {
  const sockets: net.BoundSocket[] = []
  const close = () => {
    for (const socket of sockets) socket.close()
  }
  try {
    while (sockets.length < SOCKETS) sockets.push(bind())
  } catch (error) {
    // Otherwise each attempt to start a worker would leave descriptors open.
    close()
    throw error
  }
  return { fds: sockets.map((socket) => socket.fd()), close }
}
