// The control API of the edge under /.adit/: tunnel clients connect, health and readiness checks, and a proxy
// in front asks for which hosts it may obtain certificates.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { CONNECT_PATH, OWN_PATHS } from '../../tunnel-protocol/protocol.ts'
import type { TlsAsk } from '../certificates/tls-ask.ts'
import type { IngressConnection } from '../ingress/connections.ts'
import { sendJson, sendRawJson } from '../ingress/responses.ts'
import { type ConnectHandlerOptions, connect, INVALID_UPGRADE } from './connect.ts'
import type { Readiness } from './readiness.ts'

const HEALTH_PATH = `${OWN_PATHS}health`
const READY_PATH = `${OWN_PATHS}ready`
const TLS_ASK_PATH = `${OWN_PATHS}tls-ask`
const INTERNAL_ERROR = { error: 'internal', message: 'Internal error of the edge. Retry shortly.' }
const NOT_FOUND = { error: 'not_found', message: 'Not found.' }

export interface ControlApi {
  onRequest(path: string, request: IncomingMessage, response: ServerResponse): void
  /** Turns the connection into that of a tunnel client. */
  onUpgrade(path: string, request: IncomingMessage, connection: IngressConnection, head: Buffer): void
}

interface ControlApiOptions extends ConnectHandlerOptions {
  readonly tlsAsk: Pick<TlsAsk, 'ask'>
  readonly readiness: Pick<Readiness, 'find'>
}

export function createControlApi(options: ControlApiOptions): ControlApi {
  const { tlsAsk, readiness, addresses } = options

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
      else sendJson(response, 404, NOT_FOUND)
    },
    onUpgrade(path, request, connection, head) {
      const { socket } = connection
      if (path !== CONNECT_PATH) return sendRawJson(socket, 404, NOT_FOUND)
      // An unexpected error fails one connection and not the process.
      connect(options, request, connection, head).catch(() => sendRawJson(socket, 500, INTERNAL_ERROR))
    },
  }
}
