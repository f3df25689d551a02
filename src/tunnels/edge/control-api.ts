// The control API of the edge under /.adit/: tunnel clients open tunnels, connect to them and close them.
// Stock pipenet clients have a route in pipenet's protocol.
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  CONNECTION_PATH,
  type OpenedJson,
  OWN_PATHS,
  parseAuthorization,
  TUNNELS_PATH,
  UPGRADE,
} from '../protocol.ts'
import { sendJson, sendRawError } from '../responses.ts'
import type { Admission, OpenRequest } from './admission.ts'
import { CONNECTIONS_MAX } from './agent.ts'
import type { Connection } from './connection-guard.ts'
import { QUOTA_MESSAGE } from './connection-quota.ts'
import type { Registry, Tunnel } from './registry.ts'

const PIPENET_PATHS = `${OWN_PATHS}pipenet/`
const HEALTH_PATH = `${OWN_PATHS}health`
/** Number of connections that stock pipenet clients keep open, sent when a tunnel opens. */
const PIPENET_CONNECTIONS = 10
const BODY_BYTES_MAX = 4_096

export interface ControlApiOptions {
  readonly registry: Registry
  openTunnel(request: OpenRequest): Promise<Admission>
  /** The public URL of a host. */
  urlOf(host: string): string
  readonly pipenetPort: number | undefined
}

export interface ControlApi {
  onRequest(path: string, request: IncomingMessage, response: ServerResponse): void
  /** Adds the connection to a tunnel; afterwards the edge sends requests over it. */
  onUpgrade(path: string, request: IncomingMessage, connection: Connection, head: Buffer): void
}

export function createControlApi({
  registry,
  openTunnel,
  urlOf,
  pipenetPort,
}: ControlApiOptions): ControlApi {
  const tunnelOf = ({ headers }: IncomingMessage) =>
    registry.withSecret(parseAuthorization(headers.authorization) ?? '')

  async function open(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readObject(request)
    if (!body)
      return fail(response, 400, 'invalid_request', 'The body must be a JSON object of at most 4 KiB.')
    const { name, secret } = body
    const admission = await openTunnel({ key: keyOf(request), name, secret })
    sendAdmission(
      response,
      admission,
      (tunnel, name): OpenedJson => ({ ...describe(tunnel, name), connections: CONNECTIONS_MAX }),
    )
  }

  async function openForPipenet(
    name: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const admission = await openTunnel({ key: keyOf(request), name: name || undefined })
    const settings = { port: pipenetPort, sharedTunnel: true, maxConnCount: PIPENET_CONNECTIONS }
    sendAdmission(response, admission, (tunnel, name) => ({ ...describe(tunnel, name), ...settings }))
  }

  const describe = ({ secret, host }: Tunnel, name: string) => ({ id: secret, name, host, url: urlOf(host) })

  function sendAdmission(
    response: ServerResponse,
    admission: Admission,
    toBody: (tunnel: Tunnel, name: string) => unknown,
  ): void {
    if (!('tunnel' in admission)) fail(response, admission.status, admission.error, admission.message)
    // The tunnel client disconnected, or its request turned out to be malformed, while the key was verified.
    else if (response.destroyed || response.headersSent) registry.close(admission.tunnel, 'disconnected')
    else sendJson(response, 201, toBody(admission.tunnel, admission.name))
  }

  function close(request: IncomingMessage, response: ServerResponse): void {
    const tunnel = tunnelOf(request)
    if (!tunnel) {
      fail(response, 404, 'not_found', 'Tunnel not found.')
      return
    }
    registry.close(tunnel, 'closed')
    sendJson(response, 200, { host: tunnel.host, ...tunnel.totals })
  }

  return {
    onRequest(path, request, response) {
      const { method } = request
      if (path === HEALTH_PATH) sendJson(response, 200, { status: 'ok' })
      else if (path === TUNNELS_PATH && method === 'POST') handleErrors(open(request, response), response)
      else if (path === TUNNELS_PATH && method === 'DELETE') close(request, response)
      else if (path.startsWith(PIPENET_PATHS) && method === 'GET' && pipenetPort !== undefined)
        handleErrors(openForPipenet(path.slice(PIPENET_PATHS.length), request, response), response)
      else fail(response, 404, 'not_found', 'Not found.')
    },
    onUpgrade(path, request, connection, head) {
      const { socket } = connection
      const tunnel = tunnelOf(request)
      if (path !== CONNECTION_PATH || request.headers.upgrade !== UPGRADE || !tunnel)
        return sendRawError(socket, 404, 'Tunnel not found.')
      if (!registry.mayConnect(tunnel)) return sendRawError(socket, 429, QUOTA_MESSAGE)
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${UPGRADE}\r\n\r\n`)
      // A tunnel client sends nothing before the first request.
      if (head.length > 0) socket.destroy()
      else {
        connection.releaseClientSlot()
        registry.connect(tunnel, socket)
      }
    },
  }
}

/** An unexpected error fails one request and not the process. */
function handleErrors(handling: Promise<void>, response: ServerResponse): void {
  handling.catch(() => fail(response, 500, 'internal', 'Internal error of the edge. Retry shortly.'))
}

function fail(response: ServerResponse, status: number, error: string, message: string): void {
  sendJson(response, status, { error, message })
}

const keyOf = ({ headers }: IncomingMessage) => /^Bearer (\S{1,200})$/i.exec(headers.authorization ?? '')?.[1]

/** The JSON object in the body, empty if there is no body; undefined if it is anything else. */
async function readObject(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  try {
    const value = JSON.parse((await readText(request)) || '{}')
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** A body that is too large is read to its end and discarded, so that the client gets the response. */
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
