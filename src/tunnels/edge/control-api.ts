// What the other ends of tunnels ask of the edge: to open one, to take a connection for it, and to close it. Stock pipenet
// clients ask in their own way.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { CONNECTION_PATH, idIn, type Opened, OWN_PATHS, TUNNELS_PATH, UPGRADE } from '../protocol.ts'
import { sendJson, sendRawError } from '../responses.ts'
import type { Opening, OpenRequest } from './admission.ts'
import { CONNECTIONS_MAX } from './agent.ts'
import type { Connection } from './connection-guard.ts'
import { QUOTA_MESSAGE } from './connection-quota.ts'
import type { Registry, Tunnel } from './registry.ts'

const PIPENET_PATHS = `${OWN_PATHS}pipenet/`
const HEALTH_PATH = `${OWN_PATHS}health`
/** As many connections a stock pipenet client is told to keep. */
const PIPENET_CONNECTIONS = 10
const BODY_BYTES_MAX = 4_096

export interface ControlApiOptions {
  readonly tunnels: Registry
  openTunnel(wish: OpenRequest): Promise<Opening>
  /** Where visitors find a host. */
  urlOf(host: string): string
  readonly pipenetPort: number | undefined
}

export interface ControlApi {
  answer(path: string, request: IncomingMessage, response: ServerResponse): void
  /** A connection that the edge from then on asks things over. */
  connect(path: string, request: IncomingMessage, connection: Connection, early: Buffer): void
}

export function createControlApi({ tunnels, openTunnel, urlOf, pipenetPort }: ControlApiOptions): ControlApi {
  const tunnelOf = ({ headers }: IncomingMessage) => tunnels.withSecret(idIn(headers.authorization) ?? '')

  async function open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const given = await readObject(request)
    if (!given)
      return fail(response, 400, 'invalid_request', 'The body must be a JSON object of at most 4 KiB.')
    const { name, secret } = given
    const opening = await openTunnel({ key: keyOf(request), name, secret })
    tell(
      response,
      opening,
      (tunnel, name): Opened => ({ ...shown(tunnel, name), connections: CONNECTIONS_MAX }),
    )
  }

  async function openForPipenet(
    name: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const opening = await openTunnel({ key: keyOf(request), name: name || undefined })
    const rest = { port: pipenetPort, sharedTunnel: true, maxConnCount: PIPENET_CONNECTIONS }
    tell(response, opening, (tunnel, name) => ({ ...shown(tunnel, name), ...rest }))
  }

  const shown = ({ secret, host }: Tunnel, name: string) => ({ id: secret, name, host, url: urlOf(host) })

  function tell(
    response: ServerResponse,
    opening: Opening,
    show: (tunnel: Tunnel, name: string) => unknown,
  ): void {
    if (!('tunnel' in opening)) fail(response, opening.status, opening.error, opening.message)
    // The tunnel client is gone, or was refused while the key was verified.
    else if (response.destroyed || response.headersSent) tunnels.close(opening.tunnel, 'left')
    else sendJson(response, 201, show(opening.tunnel, opening.name))
  }

  function close(request: IncomingMessage, response: ServerResponse): void {
    const tunnel = tunnelOf(request)
    if (!tunnel) {
      fail(response, 404, 'not_found', 'No such tunnel is open.')
      return
    }
    tunnels.close(tunnel, 'closed')
    sendJson(response, 200, { host: tunnel.host, ...tunnel.totals })
  }

  return {
    answer(path, request, response) {
      const { method } = request
      if (path === HEALTH_PATH) sendJson(response, 200, { status: 'ok' })
      else if (path === TUNNELS_PATH && method === 'POST') settle(open(request, response), response)
      else if (path === TUNNELS_PATH && method === 'DELETE') close(request, response)
      else if (path.startsWith(PIPENET_PATHS) && method === 'GET' && pipenetPort !== undefined)
        settle(openForPipenet(path.slice(PIPENET_PATHS.length), request, response), response)
      else fail(response, 404, 'not_found', 'The edge has nothing at this path.')
    },
    connect(path, request, connection, early) {
      const { socket } = connection
      const tunnel = tunnelOf(request)
      if (path !== CONNECTION_PATH || request.headers.upgrade !== UPGRADE || !tunnel)
        return sendRawError(socket, 404, 'No tunnel is open for whoever connects.')
      if (!tunnels.mayConnect(tunnel)) return sendRawError(socket, 429, QUOTA_MESSAGE)
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${UPGRADE}\r\n\r\n`)
      // Whoever speaks before being asked does not speak this protocol.
      if (early.length > 0) socket.destroy()
      else {
        connection.uncount()
        tunnels.connect(tunnel, socket)
      }
    },
  }
}

/** What nobody foresaw concerns whoever asked, and nobody else. */
function settle(answering: Promise<void>, response: ServerResponse): void {
  answering.catch(() => fail(response, 500, 'internal', 'The edge failed. Try again in a while.'))
}

function fail(response: ServerResponse, status: number, error: string, message: string): void {
  sendJson(response, status, { error, message })
}

const keyOf = ({ headers }: IncomingMessage) => /^Bearer (\S{1,200})$/i.exec(headers.authorization ?? '')?.[1]

/** The JSON object in the body, which may be absent. Undefined where it is something else. */
async function readObject(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  try {
    const given = JSON.parse((await readText(request)) || '{}')
    return typeof given === 'object' && given !== null && !Array.isArray(given) ? given : undefined
  } catch {
    return undefined
  }
}

/** A body that is too large is read to its end and discarded, so that the client gets its response. */
function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  return new Promise((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes <= BODY_BYTES_MAX) chunks.push(chunk)
      else reject(new RangeError('the body is too large'))
    })
    request.once('end', () => resolve(Buffer.concat(chunks).toString()))
    request.once('error', reject)
  })
}
