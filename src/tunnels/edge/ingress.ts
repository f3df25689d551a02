// Public requests: finds the tunnel by host name, proxies the request into it and counts its usage.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ProxyOptions, proxyRequest, proxyUpgrade } from '../proxy.ts'
import { sendError, sendRawError } from '../responses.ts'
import { CONNECTIONS_MAX } from './agent.ts'
import type { ClientAddresses } from './client-address.ts'
import { confineCookies } from './cookies.ts'
import type { Registry, Tunnel } from './registry.ts'

export interface Ingress {
  onRequest(host: string, request: IncomingMessage, response: ServerResponse): void
  onUpgrade(host: string, request: IncomingMessage, socket: Duplex, head: Buffer): void
}

export interface IngressOptions {
  readonly registry: Registry
  readonly clients: ClientAddresses
  readonly scheme: 'http' | 'https'
}

type SendError = (status: number, message: string) => void

const PROXY_ERRORS = {
  502: 'Bad gateway: the local server did not respond.',
  504: 'Gateway timeout: the local server did not respond in time.',
}

export function createIngress({ registry, clients, scheme }: IngressOptions): Ingress {
  /** Finds the tunnel and acquires a slot of it, or sends an error. */
  function admit(
    host: string,
    request: IncomingMessage,
    send: SendError,
  ): { tunnel: Tunnel; release: () => void } | undefined {
    const tunnel = registry.atHost(host)
    if (!tunnel) send(404, `No tunnel is open at ${host}.`)
    else if (tunnel.requests >= CONNECTIONS_MAX) send(503, 'Tunnel at capacity. Retry shortly.')
    else {
      const release = tunnel.perClient.acquire(clients.ofRequest(request))
      if (release) return { tunnel, release }
      send(429, 'Too many concurrent requests from your address. Retry shortly.')
    }
    return undefined
  }

  function proxyOptions(tunnel: Tunnel, request: IncomingMessage, send: SendError): ProxyOptions {
    const forwardedFor = request.headers['x-forwarded-for']
    const peer = request.socket.remoteAddress ?? 'unknown'
    tunnel.count({ requests: 1 })
    return {
      upstream: { agent: tunnel.agent },
      headers: {
        'x-forwarded-for': forwardedFor === undefined ? peer : `${forwardedFor}, ${peer}`,
        'x-forwarded-host': request.headers.host ?? '',
        'x-forwarded-proto': scheme,
      },
      rewriteResponse: confineCookies,
      onBytesIn: (bytesIn) => tunnel.count({ bytesIn }),
      onBytesOut: (bytesOut) => tunnel.count({ bytesOut }),
      fail: (status) => send(status, PROXY_ERRORS[status]),
    }
  }

  return {
    onRequest(host, request, response) {
      const send: SendError = (status, message) => sendError(response, status, message)
      const admitted = admit(host, request, send)
      if (!admitted) return
      const { tunnel, release } = admitted
      const finish = tunnel.track(proxyRequest(request, response, proxyOptions(tunnel, request, send)))
      response.once('close', () => {
        release()
        finish()
      })
    },
    onUpgrade(host, request, socket, head) {
      const send: SendError = (status, message) => sendRawError(socket, status, message)
      const admitted = admit(host, request, send)
      if (!admitted) return
      const { tunnel, release } = admitted
      const finish = tunnel.track(proxyUpgrade(request, socket, head, proxyOptions(tunnel, request, send)))
      socket.once('close', () => {
        release()
        finish()
      })
    },
  }
}
