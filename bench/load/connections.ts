// Keep-alive connections on raw sockets. Reading a response costs much less than in an HTTP client, which
// matters where the measured processes share the processors with the load.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

interface RawConnection {
  /** Sends a request; the previous one must have its response. */
  send(request: Buffer): void
  close(): void
}

interface RawConnectionOptions {
  url: string
  bodyPrefix?: string | undefined
  /** Called when a 2xx response is complete. */
  onResponse(): void
  onError(error: Error): void
}

/** Resolves when it is connected. */
export async function openConnection(options: RawConnectionOptions): Promise<RawConnection> {
  const { hostname, port } = new URL(options.url)
  const socket = connect(Number(port), hostname).setNoDelay(true)
  await once(socket, 'connect')
  readResponses(socket, options)
  return { send: (request: Buffer) => socket.write(request), close: () => socket.destroy() }
}

function readResponses(socket: Socket, { bodyPrefix = '', onResponse, onError }: RawConnectionOptions): void {
  const prefix = Buffer.from(bodyPrefix)
  let received: Buffer = Buffer.alloc(0)
  /** The last response's. One of the same length has the same head, so its head is not parsed again. */
  let bounds: { bodyAt: number; end: number } | undefined
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    if (received.length !== bounds?.end) bounds = findBounds(received)
    if (!bounds || received.length < bounds.end) return
    const body = received.subarray(bounds.bodyAt, bounds.bodyAt + prefix.length)
    if (received[9] !== TWO || !body.equals(prefix))
      onError(new Error(`unexpected response: ${received.toString('latin1', 0, 300)}`))
    received = Buffer.alloc(0)
    onResponse()
  })
  socket.on('error', onError)
  socket.on('end', () => onError(new Error('the server closed a connection')))
}

const TWO = '2'.charCodeAt(0)

/** Where the body of the response begins and ends; undefined if the head is not complete. */
export function findBounds(received: Buffer): { bodyAt: number; end: number } | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return undefined
  const length = /content-length: (\d+)/i.exec(received.toString('latin1', 0, headEnd))?.[1]
  if (length === undefined) throw new Error('a response without a length')
  const bodyAt = headEnd + 4
  return { bodyAt, end: bodyAt + Number(length) }
}
