// Visitors of tunnels: whoever asks for the host name of an open one is handed on into it, and what passes is counted.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { refuseUpgrade, refuseVisitor } from './answers.ts'
import { CONNECTIONS_MAX } from './lender.ts'
import { type Passage, passOn, passUpgrade } from './pass-on.ts'
import type { Tunnel, Tunnels } from './tunnels.ts'

export interface Visitors {
  serve(host: string, request: IncomingMessage, response: ServerResponse): void
  serveUpgrade(host: string, request: IncomingMessage, socket: Duplex, early: Buffer): void
}

export function createVisitors(tunnels: Tunnels, scheme: 'http' | 'https'): Visitors {
  /** The tunnel, unless there is none or it is busy. */
  function admit(host: string, refuse: (status: number, words: string) => void): Tunnel | undefined {
    const tunnel = tunnels.atHost(host)
    if (!tunnel) refuse(404, `No tunnel is open at ${host}.`)
    else if (tunnel.visitors < CONNECTIONS_MAX) return tunnel
    else refuse(503, 'The tunnel carries as much at once as it can. Try again in a moment.')
    return undefined
  }

  function passageInto(
    tunnel: Tunnel,
    request: IncomingMessage,
    refuse: (status: number, words: string) => void,
  ): Passage {
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
      onBytesIn: (bytesIn) => tunnel.count({ bytesIn }),
      onBytesOut: (bytesOut) => tunnel.count({ bytesOut }),
      refuse: (status) => refuse(status, `What is behind the tunnel at ${tunnel.host} gave no answer.`),
    }
  }

  return {
    serve(host, request, response) {
      const refuse = (status: number, words: string) => refuseVisitor(response, status, words)
      const tunnel = admit(host, refuse)
      if (tunnel)
        response.once('close', tunnel.serve(passOn(request, response, passageInto(tunnel, request, refuse))))
    },
    serveUpgrade(host, request, socket, early) {
      const refuse = (status: number, words: string) => refuseUpgrade(socket, status, words)
      const tunnel = admit(host, refuse)
      if (tunnel)
        socket.once(
          'close',
          tunnel.serve(passUpgrade(request, socket, early, passageInto(tunnel, request, refuse))),
        )
    },
  }
}
