// Visitors of tunnels: whoever asks for the host name of an open one is handed on into it, and what passes is counted.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ProxyOptions, proxyRequest, proxyUpgrade } from '../proxy.ts'
import { sendError, sendRawError } from '../responses.ts'
import { CONNECTIONS_MAX } from './agent.ts'
import type { ClientAddresses } from './client-address.ts'
import { confineCookies } from './cookies.ts'
import type { Registry, Tunnel } from './registry.ts'

export interface Ingress {
  serve(host: string, request: IncomingMessage, response: ServerResponse): void
  serveUpgrade(host: string, request: IncomingMessage, socket: Duplex, early: Buffer): void
}

export interface VisitorsOptions {
  readonly tunnels: Registry
  readonly clients: ClientAddresses
  readonly scheme: 'http' | 'https'
}

export function createIngress({ tunnels, clients, scheme }: VisitorsOptions): Ingress {
  /** A tunnel with a slot for the request, unless there is none. */
  function admit(
    host: string,
    request: IncomingMessage,
    refuse: (status: number, words: string) => void,
  ): { tunnel: Tunnel; release: () => void } | undefined {
    const tunnel = tunnels.atHost(host)
    if (!tunnel) refuse(404, `No tunnel is open at ${host}.`)
    else if (tunnel.visitors >= CONNECTIONS_MAX)
      refuse(503, 'The tunnel carries as much at once as it can. Try again in a moment.')
    else {
      const release = tunnel.perClient.acquire(clients.ofRequest(request))
      if (release) return { tunnel, release }
      refuse(429, 'Too many requests at once from your address. Retry shortly.')
    }
    return undefined
  }

  function passageInto(
    tunnel: Tunnel,
    request: IncomingMessage,
    refuse: (status: number, words: string) => void,
  ): ProxyOptions {
    const before = request.headers['x-forwarded-for']
    const from = request.socket.remoteAddress ?? 'unknown'
    tunnel.count({ requests: 1 })
    return {
      to: { agent: tunnel.agent },
      headers: {
        'x-forwarded-for': before === undefined ? from : `${before}, ${from}`,
        'x-forwarded-host': request.headers.host ?? '',
        'x-forwarded-proto': scheme,
      },
      rewriteResponse: confineCookies,
      onBytesIn: (bytesIn) => tunnel.count({ bytesIn }),
      onBytesOut: (bytesOut) => tunnel.count({ bytesOut }),
      refuse: (status) => refuse(status, `What is behind the tunnel at ${tunnel.host} gave no answer.`),
    }
  }

  return {
    serve(host, request, response) {
      const refuse = (status: number, words: string) => sendError(response, status, words)
      const admitted = admit(host, request, refuse)
      if (!admitted) return
      const { tunnel, release } = admitted
      const done = tunnel.serve(proxyRequest(request, response, passageInto(tunnel, request, refuse)))
      response.once('close', () => {
        release()
        done()
      })
    },
    serveUpgrade(host, request, socket, early) {
      const refuse = (status: number, words: string) => sendRawError(socket, status, words)
      const admitted = admit(host, request, refuse)
      if (!admitted) return
      const { tunnel, release } = admitted
      const done = tunnel.serve(proxyUpgrade(request, socket, early, passageInto(tunnel, request, refuse)))
      socket.once('close', () => {
        release()
        done()
      })
    },
  }
}
