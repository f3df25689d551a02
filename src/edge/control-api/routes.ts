// The control API of the edge under /.adit/: tunnel clients connect, health and readiness checks, and a proxy
// in front asks for which hosts it may obtain certificates.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { HOST_HEADER_RULE, isHost, normalizeOrigin } from '../../lib/net/host-header.ts'
import { normalizeAddress } from '../../lib/net/ip-address.ts'
import {
  CONNECT_PATH,
  OWN_PATHS,
  SUBPROTOCOL,
  TUNNEL_HEADER,
  type TunnelRequest,
} from '../../tunnel-protocol/protocol.ts'
import { InvalidAccess, parseAccess, rejectUnknown } from '../../tunnel-protocol/requested-access.ts'
import { acceptKey, WebSocketConnection } from '../../tunnel-protocol/websocket.ts'
import type { OpenTunnel } from '../admission/admit.ts'
import type { Rejection } from '../admission/rejections.ts'
import type { TlsAsk } from '../certificates/tls-ask.ts'
import type { ClientAddresses } from '../ingress/client-address.ts'
import type { IngressConnection } from '../ingress/connections.ts'
import { sendJson, sendRawJson } from '../ingress/responses.ts'
import type { Readiness } from './readiness.ts'

const HEALTH_PATH = `${OWN_PATHS}health`
const READY_PATH = `${OWN_PATHS}ready`
const TLS_ASK_PATH = `${OWN_PATHS}tls-ask`
const HEADER_CHARS_MAX = 4_096
/** Of `resume` and `session`. */
const SECRET = /^[\w-]{32}$/
const CLIENT = /^[\x20-\x7e]{0,64}$/
const IDLE_CONNECTIONS_MAX = 1_000
const FIELDS = 'type, name, pool, resume, session, client, access, target, hostHeader and idleConnections'
const INVALID_UPGRADE =
  `Expected a WebSocket upgrade to ${CONNECT_PATH} with Sec-WebSocket-Version 13, Sec-WebSocket-Key and ` +
  `Sec-WebSocket-Protocol: ${SUBPROTOCOL}.`
const INVALID_HEADER =
  'The header Adit-Tunnel must be a JSON object of at most 4 KiB with type ("http" or "tcp"), name, pool, ' +
  'resume, session, client, access, target (an origin such as "http://localhost:3000"), hostHeader and ' +
  'idleConnections (0 to 1000), all of them optional.'
const INVALID_HOST_HEADER = `Invalid hostHeader (expected ${HOST_HEADER_RULE}, and a target).`
const INTERNAL_ERROR = { error: 'internal', message: 'Internal error of the edge. Retry shortly.' }

export interface ControlApi {
  onRequest(path: string, request: IncomingMessage, response: ServerResponse): void
  /** Turns the connection into that of a tunnel client. */
  onUpgrade(path: string, request: IncomingMessage, connection: IngressConnection, head: Buffer): void
}

interface ControlApiOptions {
  readonly openTunnel: OpenTunnel
  readonly tlsAsk: Pick<TlsAsk, 'ask'>
  readonly readiness: Pick<Readiness, 'find'>
  readonly addresses: Pick<ClientAddresses, 'isFromProxy' | 'ofRequest'>
}

export function createControlApi({
  openTunnel,
  tlsAsk,
  readiness,
  addresses,
}: ControlApiOptions): ControlApi {
  async function connect(
    request: IncomingMessage,
    connection: IngressConnection,
    head: Buffer,
  ): Promise<void> {
    const { socket } = connection
    const upgrade = parseUpgrade(request)
    if (!upgrade) return fail(socket, { status: 400, error: 'invalid_request', message: INVALID_UPGRADE })
    const tunnelRequest = readTunnelRequest(request)
    if (typeof tunnelRequest === 'string')
      return fail(socket, { status: 400, error: 'invalid_request', message: tunnelRequest })
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
    const address = addresses.ofRequest(request) ?? normalizeAddress(request.socket.remoteAddress ?? '')
    // The client has disconnected already.
    if (address === undefined) return void socket.destroy()
    const rejection = await openTunnel({ key: readKey(request), address, request: tunnelRequest, accept })
    if (rejection) fail(socket, rejection)
  }

  function answerReady(response: ServerResponse): void {
    const unready = readiness.find()
    if (unready) sendJson(response, 503, unready)
    else sendJson(response, 200, { status: 'ready' })
  }

  async function answerTlsAsk({ url = '' }: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = new URLSearchParams(url.slice(TLS_ASK_PATH.length))
    const { status, ...answer } = await tlsAsk.ask(query.get('domain') ?? '')
    sendJson(response, status, answer)
  }

  return {
    onRequest(path, request, response) {
      if (path === HEALTH_PATH) sendJson(response, 200, { status: 'ok' })
      else if (path === READY_PATH) answerReady(response)
      // Clients of the proxy get a 404: they could learn names and use up lookups.
      else if (path === TLS_ASK_PATH && addresses.isFromProxy(request))
        answerTlsAsk(request, response).catch(() => sendJson(response, 500, INTERNAL_ERROR))
      else if (path === CONNECT_PATH)
        sendJson(response, 400, { error: 'invalid_request', message: INVALID_UPGRADE })
      else sendJson(response, 404, { error: 'not_found', message: 'Not found.' })
    },
    onUpgrade(path, request, connection, head) {
      const { socket } = connection
      if (path !== CONNECT_PATH)
        return sendRawJson(socket, 404, { error: 'not_found', message: 'Not found.' })
      // An unexpected error fails one connection and not the process.
      connect(request, connection, head).catch(() => sendRawJson(socket, 500, INTERNAL_ERROR))
    },
  }
}

function fail(socket: Duplex, { status, error, message }: Rejection): void {
  sendRawJson(socket, status, { error, message })
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

/** Returns the parsed header, or a message that says why it is invalid. */
function readTunnelRequest({ headers }: IncomingMessage): TunnelRequest | string {
  try {
    return parseTunnelRequest(headers[TUNNEL_HEADER]) ?? INVALID_HEADER
  } catch (error) {
    if (error instanceof InvalidAccess) return error.message
    throw error
  }
}

function parseTunnelRequest(header: string | string[] | undefined = '{}'): TunnelRequest | undefined {
  if (typeof header !== 'string' || header.length > HEADER_CHARS_MAX) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(header)
  } catch {
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined
  const {
    type = 'http',
    name,
    pool = false,
    resume,
    session,
    client,
    access,
    target,
    hostHeader,
    idleConnections,
    ...others
  } = parsed as Record<string, unknown>
  rejectUnknown('Adit-Tunnel', others, FIELDS)
  if (type !== 'http' && type !== 'tcp') return undefined
  if (typeof pool !== 'boolean') return undefined
  if (name !== undefined && typeof name !== 'string') return undefined
  if (!isSecret(resume) || !isSecret(session)) return undefined
  if (client !== undefined && !(typeof client === 'string' && CLIENT.test(client))) return undefined
  if (target !== undefined && !(typeof target === 'string' && normalizeOrigin(target))) return undefined
  if (hostHeader !== undefined && !isHostHeader(hostHeader, target))
    throw new InvalidAccess(INVALID_HOST_HEADER)
  if (idleConnections !== undefined && !isIdleConnections(idleConnections)) return undefined
  const rules = access === undefined ? undefined : parseAccess(type, access)
  return { type, name, pool, resume, session, client, access: rules, target, hostHeader, idleConnections }
}

const isSecret = (value: unknown): value is string | undefined =>
  value === undefined || (typeof value === 'string' && SECRET.test(value))

const isIdleConnections = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= IDLE_CONNECTIONS_MAX

const isHostHeader = (value: unknown, target: string | undefined): value is string =>
  typeof value === 'string' && isHost(value) && target !== undefined
