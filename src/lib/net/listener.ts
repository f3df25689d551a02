// Accepts the connections of a server on several listening sockets of one port. Node accepts one connection
// per turn of the event loop and listening socket: with a single one, clients that keep the loop busy would
// delay new connections by seconds.
import { type AddressInfo, createServer, type ListenOptions, Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

const SOCKETS = 64
/** Where the system cannot distribute connections to several sockets: macOS, Windows, old kernels. */
const UNSUPPORTED = new Set(['ENOTSUP', 'ENOPROTOOPT', 'EINVAL'])
/** For connections that wait to be accepted when the listener is closed. */
const CLOSE_TIMEOUT_MS = 1_000

export interface ListenerOptions {
  readonly host: string
  readonly port: number
  /** Of accepted connections, like the option of the server. */
  readonly keepAliveInitialDelay?: number
  /** Workers of a cluster share the socket of their primary. */
  readonly isWorker?: boolean
}

export interface Listener {
  readonly address: AddressInfo
  /** Resolves when all sockets listen. */
  readonly complete: Promise<unknown>
  /** The number of open connections. */
  connectionCount(): number
  /**
   * Stops accepting, and leaves accepted connections open. The system resets connections that wait in the
   * queue of a socket which is closed, so these are accepted first.
   */
  close(): Promise<void>
}

export async function startListener(server: Server, options: ListenerOptions): Promise<Listener> {
  const { host, port, isWorker = false } = options
  let accepted = 0
  let open = 0
  server.on('connection', (socket: Socket) => {
    accepted += 1
    open += 1
    socket.once('close', () => {
      open -= 1
    })
  })
  const isShared = !isWorker && (await listenShared(server, { host, port }))
  if (!isShared) await listen(server, { host, port })
  const address = server.address() as AddressInfo
  // Not awaited here, so that the caller can prepare the server before its first connection. It also works
  // with fewer sockets.
  const others = isShared ? createSockets(server, options.keepAliveInitialDelay) : []
  const complete = Promise.allSettled(
    others.map((socket) => listen(socket, { host: address.address, port: address.port, reusePort: true })),
  )
  return {
    address,
    complete,
    connectionCount: () => open,
    async close() {
      const deadline = performance.now() + CLOSE_TIMEOUT_MS
      // Until the end of this turn, in which the sockets may have been polled already.
      await setImmediate()
      for (let before = -1; accepted !== before && performance.now() < deadline; ) {
        before = accepted
        await setImmediate()
      }
      for (const socket of others) socket.close()
      // Not the method of an HTTP server, which also closes connections on which a request is arriving.
      Server.prototype.close.call(server)
    },
  }
}

/** Whether other sockets can listen on the same port. */
async function listenShared(server: Server, address: ListenOptions): Promise<boolean> {
  // Fails if another program listens on the port: with `reusePort` both would get some of the connections.
  if (address.port !== 0) {
    const exclusive = createServer()
    await listen(exclusive, { ...address, exclusive: true })
    await new Promise((resolve) => exclusive.close(resolve))
  }
  try {
    await listen(server, { ...address, reusePort: true })
    return true
  } catch (error) {
    if (UNSUPPORTED.has((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/** Sockets whose connections are those of the server, with the options of an HTTP server. */
function createSockets(server: Server, keepAliveInitialDelay?: number): Server[] {
  const options = {
    allowHalfOpen: true,
    noDelay: true,
    ...(keepAliveInitialDelay !== undefined && { keepAlive: true, keepAliveInitialDelay }),
  }
  return Array.from({ length: SOCKETS - 1 }, () =>
    createServer(options, (connection) => server.emit('connection', connection)),
  )
}

function listen(server: Server, address: ListenOptions): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // Also errors of later connections, which have no other listener.
  server.on('error', reject)
  server.listen(address, resolve)
  return promise
}
