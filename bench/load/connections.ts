// Keep-alive connections on raw sockets. Reading a response costs much less than in an HTTP client, which
// matters where several measured processes share the processors with the load.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { RequestSpec } from './jobs.ts'
import { prepareOne } from './requests.ts'

export interface RawConnection {
  /** Sends the request; the previous one must have its response. */
  send(): void
  close(): void
}

export interface RawConnectionsOptions {
  url: string
  request: RequestSpec
  connections: number
  /** Called when a 2xx response is complete. */
  onResponse(connection: RawConnection): void
  onError(error: Error): void
}

/** Resolves when all are connected. */
export async function openConnections(options: RawConnectionsOptions): Promise<RawConnection[]> {
  const { hostname, port } = new URL(options.url)
  const prepared = prepareOne(options.url, options.request)
  const open = async () => {
    const socket = connect(Number(port), hostname).setNoDelay(true)
    await once(socket, 'connect')
    const connection: RawConnection = {
      send: () => socket.write(prepared.requestBuffer),
      close: () => socket.destroy(),
    }
    readResponses(socket, () => options.onResponse(connection), options.onError)
    return connection
  }
  return Promise.all(Array.from({ length: options.connections }, open))
}

function readResponses(socket: Socket, onResponse: () => void, onError: (error: Error) => void): void {
  let seen: Buffer = Buffer.alloc(0)
  /** Of the last response. One of the same length has the same head, so its head is not parsed again. */
  let length: number | undefined
  socket.on('data', (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk])
    if (seen.length !== length) length = lengthOf(seen)
    if (length === undefined || seen.length < length) return
    if (seen[9] !== TWO) onError(new Error(`not a 2xx response: ${seen.toString('latin1', 0, 12)}`))
    seen = Buffer.alloc(0)
    onResponse()
  })
  socket.on('error', onError)
  socket.on('end', () => onError(new Error('the server closed a connection')))
}

const TWO = '2'.charCodeAt(0)

/** The length of the response that begins here; undefined if its head is not complete. */
export function lengthOf(seen: Buffer): number | undefined {
  const end = seen.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const length = /content-length: (\d+)/i.exec(seen.toString('latin1', 0, end))?.[1]
  if (length === undefined) throw new Error('a response without a length')
  return end + 4 + Number(length)
}
