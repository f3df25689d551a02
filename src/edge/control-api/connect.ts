// A tunnel client connects: opens the tunnel that it asks for, on a WebSocket.
import type { IncomingMessage } from 'node:http'
import { normalizeAddress } from '../../lib/net/ip-address.ts'
import { CONNECT_PATH, SUBPROTOCOL } from '../../tunnel-protocol/protocol.ts'
import { acceptKey, WebSocketConnection } from '../../tunnel-protocol/websocket.ts'
import type { AdmitTunnel } from '../admission/admit.ts'
import { type Rejection, rejection } from '../admission/rejections.ts'
import type { ClientAddresses } from '../ingress/client-address.ts'
import type { IngressConnection } from '../ingress/connections.ts'
import { sendRawJson } from '../ingress/responses.ts'
import { readTunnelRequest } from './tunnel-request.ts'

export const INVALID_UPGRADE =
  `Expected a WebSocket upgrade to ${CONNECT_PATH} with Sec-WebSocket-Version 13, Sec-WebSocket-Key and ` +
  `Sec-WebSocket-Protocol: ${SUBPROTOCOL}.`

export interface ConnectHandlerOptions {
  readonly openTunnel: AdmitTunnel
  readonly addresses: Pick<ClientAddresses, 'isFromProxy' | 'ofRequest'>
}

export async function connect(
  { openTunnel, addresses }: ConnectHandlerOptions,
  incoming: IncomingMessage,
  connection: IngressConnection,
  head: Buffer,
): Promise<void> {
  const { socket } = connection
  const fail = ({ status, error, message }: Rejection) => sendRawJson(socket, status, { error, message })
  const upgrade = parseUpgrade(incoming)
  if (!upgrade) return fail(rejection(400, 'invalid_request', INVALID_UPGRADE))
  const request = readTunnelRequest(incoming)
  if (typeof request === 'string') return fail(rejection(400, 'invalid_request', request))
  const accept = () => {
    if (socket.destroyed) return undefined
    connection.detach()
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${acceptKey(upgrade.key)}\r\nSec-WebSocket-Protocol: ${SUBPROTOCOL}\r\n\r\n`,
    )
    return new WebSocketConnection(socket, { role: 'server', head })
  }
  // If a proxy does not send the address of the client, its own is used.
  const address = addresses.ofRequest(incoming) ?? normalizeAddress(socket.remoteAddress ?? '')
  // The client has disconnected already.
  if (address === undefined) return void socket.destroy()
  const rejected = await openTunnel({ key: readKey(incoming), address, request, accept })
  if (rejected) fail(rejected)
}

const readKey = ({ headers }: IncomingMessage) =>
  /^Bearer (\S{1,200})$/i.exec(headers.authorization ?? '')?.[1]

function parseUpgrade({ headers }: IncomingMessage): { key: string } | undefined {
  const key = headers['sec-websocket-key'] ?? ''
  const protocols = (headers['sec-websocket-protocol'] ?? '').split(/\s*,\s*/)
  const isValid =
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['sec-websocket-version'] === '13' &&
    /^[\w+/]{22}==$/.test(key) &&
    protocols.includes(SUBPROTOCOL)
  return isValid ? { key } : undefined
}
