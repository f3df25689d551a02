// The HTTP client of the edge: requests to the local server of a tunnel client, over streams of its
// connection. A stream is one connection to the local server, and is reused for further requests.
import { type Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import type { Socket } from 'node:net'
import type { YamuxStream } from '../../yamux/index.ts'
import type { TunnelClient } from './tunnel-client.ts'

/** Limit of 1xx responses to one request. */
const INFORMATIONAL_MAX = 32

/** `onSocket` is what Node calls on requests of an agent; its types omit it. */
type PendingRequest = ClientRequest & { onSocket(socket: Socket): void }

interface UpstreamOptions extends RequestOptions {
  readonly client: TunnelClient
  readonly mayReuse: boolean
}

/** What node:http needs of an agent. The streams belong to the tunnel client, so one agent serves all. */
const agent = {
  keepAlive: true,
  maxSockets: Number.POSITIVE_INFINITY,
  defaultPort: 80,
  protocol: 'http:',
  addRequest(pending: PendingRequest, { client, mayReuse }: UpstreamOptions): void {
    try {
      const reused = mayReuse ? client.takeIdle() : undefined
      pending.reusedSocket = reused !== undefined
      const stream = reused ?? client.openStream()
      stream.once('free', () => client.putIdle(stream))
      pending.onSocket(stream as YamuxStream & Socket)
    } catch (error) {
      // The connection of the client is closed.
      pending.destroy(error as Error)
    }
  },
} as unknown as Agent

/**
 * Sends the head of a request. Only requests that may be repeated are sent over a reused stream, because the
 * local server may be closing it at the same time.
 */
export function startUpstreamRequest(
  client: TunnelClient,
  { method, url }: IncomingMessage,
  headers: string[],
  mayReuse: boolean,
): ClientRequest {
  const options: UpstreamOptions = {
    agent,
    client,
    mayReuse,
    method,
    path: url,
    headers,
    setHost: false,
    setDefaultHeaders: false,
  }
  const started = request(options)
  let informational = 0
  started.on('information', () => {
    informational += 1
    if (informational > INFORMATIONAL_MAX) started.destroy(new Error('Too many informational responses.'))
  })
  return started
}
