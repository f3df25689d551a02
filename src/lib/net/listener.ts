// Accepts the connections of a server on several listening sockets of one port. Node accepts one connection
// per turn of the event loop and listening socket: with a single one, clients that keep the loop busy would
// delay new connections by seconds.
import { once } from 'node:events'
import { type AddressInfo, createServer, type ListenOptions, Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { Throttle } from '../throttle.ts'
import { MINUTE_MS } from '../time.ts'

export const SOCKETS = 64
/** SO_REUSEPORT is not supported: macOS, Windows, old kernels. */
const UNSUPPORTED = new Set(['ENOTSUP', 'ENOPROTOOPT', 'EINVAL'])
/** How long `close` accepts connections that are already in the queue. */
const CLOSE_TIMEOUT_MS = 1_000

interface ListenerOptions {
  readonly host: string
  readonly port: number
  /** The keep-alive delay of accepted connections, like the option of the server. */
  readonly keepAliveInitialDelay?: number
  /** In a worker: the sockets that its primary has bound; empty if the cluster module passes connections. */
  readonly inheritedSockets?: readonly Socket[]
  /**
   * Accepting failed, for example because of too many open files, or a further socket could not listen.
   * Called at most once a minute for each kind of error.
   */
  readonly onError?: (error: Error) => void
}

export interface Listener {
  readonly address: AddressInfo
  /** Resolves when every further socket listens or has failed to. The first one listens already. */
  readonly allListening: Promise<unknown>
  /** The number of open connections. */
  connectionCount(): number
  /**
   * Stops accepting, and leaves accepted connections open. The system resets connections that wait in the
   * queue of a socket which is closed, so these are accepted first.
   */
  close(): Promise<void>
}

export async function startListener(server: Server, options: ListenerOptions): Promise<Listener> {
  let accepted = 0
  let open = 0
  server.on('connection', (socket: Socket) => {
    accepted += 1
    open += 1
    socket.once('close', () => {
      open -= 1
    })
  })
  const otherAddresses = await listenFirst(server, options)
  const address = server.address() as AddressInfo
  const others = otherAddresses.map(() => createOther(server, options.keepAliveInitialDelay))
  reportErrors([server, ...others], options.onError)
  // The caller awaits it after it has prepared the server for the first connection.
  const allListening = Promise.allSettled(
    otherAddresses.map((other, index) => listen(others[index] as Server, other)),
  )
  return {
    address,
    allListening,
    connectionCount: () => open,
    async close() {
      const deadline = performance.now() + CLOSE_TIMEOUT_MS
      // The poll phase of this turn of the event loop may be over.
      await setImmediate()
      for (let before = -1; accepted !== before && performance.now() < deadline; ) {
        before = accepted
        await setImmediate()
      }
      for (const other of others) other.close()
      // `close` of an HTTP server would also close connections on which a request is arriving.
      Server.prototype.close.call(server)
    },
  }
}

/** An address to bind, or a socket that is already bound. */
type Address = ListenOptions | Socket

/** Returns the addresses of the other sockets of the same port. */
async function listenFirst(server: Server, options: ListenerOptions): Promise<readonly Address[]> {
  const { host, port, inheritedSockets } = options
  const [inherited, ...others] = inheritedSockets ?? []
  if (inherited) {
    await listen(server, inherited)
    return others
  }
  if (!inheritedSockets && (await listenReusePort(server, { host, port }))) {
    const { address, port: number } = server.address() as AddressInfo
    return Array.from({ length: SOCKETS - 1 }, () => ({ host: address, port: number, reusePort: true }))
  }
  await listen(server, { host, port })
  return []
}

/** Whether other sockets can listen on the same port. */
async function listenReusePort(server: Server, address: ListenOptions): Promise<boolean> {
  if (address.port !== 0) await probe(address)
  try {
    await listen(server, { ...address, reusePort: true })
    return true
  } catch (error) {
    if (isReusePortUnsupported(error)) return false
    throw error
  }
}

export const isReusePortUnsupported = (error: unknown): boolean =>
  UNSUPPORTED.has((error as NodeJS.ErrnoException).code ?? '')

/**
 * Fails if another program listens on the port: with `reusePort` both would get some of the connections. Two
 * servers of one user that start within the same few milliseconds can still share it: the system has no way
 * to reserve a port for the sockets of one process.
 */
export async function probe(address: ListenOptions): Promise<AddressInfo> {
  const server = createServer()
  await listen(server, { ...address, exclusive: true })
  const listeningAddress = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return listeningAddress
}

/** A further listener, which passes its connections to `server`. */
function createOther(server: Server, keepAliveInitialDelay?: number): Server {
  const options = {
    allowHalfOpen: true,
    noDelay: true,
    ...(keepAliveInitialDelay !== undefined && { keepAlive: true, keepAliveInitialDelay }),
  }
  return createServer(options, (connection) => server.emit('connection', connection))
}

/** Throttled, because all sockets fail together, and again at the next connection. */
function reportErrors(servers: Server[], onError: (error: Error) => void = () => {}): void {
  const throttle = new Throttle()
  const report = (error: NodeJS.ErrnoException) => throttle.run(error.code, MINUTE_MS, () => onError(error))
  for (const server of servers) server.on('error', report)
}

async function listen(server: Server, address: Address): Promise<void> {
  server.listen(address)
  await once(server, 'listening')
}
