// Routes the requests of the listener: paths under /.adit/ to the control API, all others to ingress.
import { OWN_PATHS } from '../tunnel-protocol/protocol.ts'
import type { ControlApi } from './control-api/routes.ts'
import type { VisitorError } from './error-responses/causes.ts'
import type { IngressConnection, IngressConnectionsOptions } from './ingress/connections.ts'
import { mayUpgrade } from './ingress/headers/forwarded.ts'
import { headersError } from './ingress/headers/limits.ts'
import { INVALID_TARGET, parseTarget, sendError, sendRawError } from './ingress/responses.ts'
import type { Ingress } from './ingress/server.ts'

const UPGRADE_WITH_BODY: VisitorError = {
  cause: 'malformed_request',
  detail: 'A request with a body cannot be upgraded.',
}

export function createRouter(
  controlApi: ControlApi,
  ingress: Ingress,
  isReplaced: () => boolean,
): Pick<IngressConnectionsOptions, 'onRequest' | 'onUpgrade'> {
  return {
    onRequest(request, response) {
      const target = parseTarget(request)
      // The next request of the connection goes to another worker.
      if (isReplaced()) response.shouldKeepAlive = false
      if (!target) sendError(response, INVALID_TARGET)
      else if (target.path.startsWith(OWN_PATHS)) controlApi.onRequest(target.path, request, response)
      else ingress.onRequest(target.host, request, response)
    },
    onUpgrade(request, connection: IngressConnection, head) {
      const { socket } = connection
      const limitError = headersError(request)
      const target = parseTarget(request)
      if (limitError) sendRawError(socket, request, limitError)
      else if (!target) sendRawError(socket, request, INVALID_TARGET)
      // Node versions with shouldUpgradeCallback emit a request instead.
      else if (!mayUpgrade(request)) sendRawError(socket, request, UPGRADE_WITH_BODY)
      else if (target.path.startsWith(OWN_PATHS)) controlApi.onUpgrade(target.path, request, connection, head)
      else ingress.onUpgrade(target.host, request, socket, head)
    },
  }
}
