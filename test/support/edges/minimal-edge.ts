// An edge in the process of a test: real upgrade, WebSocket and yamux, and the test decides what it does.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  CONNECT_PATH,
  SUBPROTOCOL,
  TUNNEL_HEADER,
  type TunnelEvent,
  type TunnelRequest,
} from '../../../src/tunnel-protocol/protocol.ts'
import { acceptKey, WebSocketConnection } from '../../../src/tunnel-protocol/websocket.ts'
import { Session, type YamuxStream } from '../../../src/yamux/index.ts'
import { atEnd, type Test } from '../cleanup.ts'
import { listen } from '../network/listen.ts'
import { until } from '../until.ts'

export interface EdgeSide {
  readonly request: TunnelRequest
  readonly authorization: string | undefined
  readonly session: Session
  readonly events: YamuxStream
  readonly socket: Duplex
  isGoingAway: boolean
  isClosed: boolean
  send(event: TunnelEvent): void
}

interface MinimalEdgeOptions {
  /** Whether `respond` is called; always by default, if there is one. */
  isRejected?(): boolean
  /** Responds to the upgrade as to another request. */
  respond?(request: IncomingMessage, response: ServerResponse): void
  /** Without it, the tunnel is opened at once. */
  onConnect?(side: EdgeSide): void
  port?: number
}

export const OPENED = {
  type: 'http',
  url: 'http://my-app.acme.tunnels.test',
  host: 'my-app.acme.tunnels.test',
  name: 'my-app',
} as const

export async function startMinimalEdge(
  t: Test,
  {
    respond,
    isRejected = () => respond !== undefined,
    onConnect,
    port: wantedPort = 0,
  }: MinimalEdgeOptions = {},
) {
  const connections: EdgeSide[] = []
  const open = (side: EdgeSide) => side.send({ event: 'open', ...OPENED })

  function accept(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const key = request.headers['sec-websocket-key'] ?? ''
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${acceptKey(key)}\r\nSec-WebSocket-Protocol: ${SUBPROTOCOL}\r\n\r\n`,
    )
    const session = new Session(new WebSocketConnection(socket, { role: 'server', head }), {
      role: 'server',
      onStream: (stream) => stream.destroy(),
      onGoAway: () => {
        side.isGoingAway = true
      },
      onClose: () => {
        side.isClosed = true
      },
    })
    const events = session.open()
    events.on('error', () => undefined)
    const side: EdgeSide = {
      request: JSON.parse(String(request.headers[TUNNEL_HEADER])),
      authorization: request.headers.authorization,
      session,
      events,
      socket,
      isGoingAway: false,
      isClosed: false,
      send: (event) => events.write(`${JSON.stringify(event)}\n`),
    }
    connections.push(side)
    if (onConnect) onConnect(side)
    else open(side)
  }

  const server = createServer({ shouldUpgradeCallback: () => !isRejected() }, (request, response) => {
    if (respond) respond(request, response)
    else response.writeHead(404).end()
  })
  server.on('upgrade', (request, socket, head) => {
    if (request.url === CONNECT_PATH) accept(request, socket, head)
    else socket.destroy()
  })
  const port = await listen(t, server, wantedPort)
  atEnd(t, () => {
    for (const { session } of connections) session.close()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    connections,
    /** Waits for the nth connection, from 0. */
    async connection(index = 0): Promise<EdgeSide> {
      await until(`connection ${index}`, () => connections.length > index)
      return connections[index] as EdgeSide
    },
  }
}

/** A stream to the local server of the client, whose resets are not errors of the test. */
export function openStream({ session }: EdgeSide): YamuxStream {
  const stream = session.open()
  stream.on('error', () => undefined)
  return stream
}
