// Connections to the ports of TCP tunnels: passed on to a client of this edge or, without one, to a client of
// another edge.
import type { Socket } from 'node:net'
import { connectStreams } from '../../tunnel-protocol/connect-streams.ts'
import type { YamuxStream } from '../../yamux/index.ts'
import type { ActiveRequest, Visitor } from '../ingress/active-request.ts'
import type { Authorization, OpenTunnel, SendError } from '../ingress/authorization.ts'
import type { ClientAddresses } from '../ingress/client-address.ts'
import { readVerdict } from '../peers/forwarded-stream.ts'
import { RemoteClient } from '../peers/remote-client.ts'
import type { RemoteTunnels } from '../peers/remote-tunnels.ts'
import type { UpstreamClient } from '../tunnels/upstream-client.ts'

/** Rules may change, and then the edge of the client may be lost. */
const ATTEMPTS_MAX = 3
/** How long a connection may wait for the client of a tunnel that is being opened. */
const OPENING_MS = 1_000
const OPENING_POLL_MS = 20

export interface TcpIngressOptions extends Pick<Authorization, 'findTunnel' | 'findQuotaEnd'> {
  readonly addresses: Pick<ClientAddresses, 'ofPeer'>
  readonly remote: Pick<RemoteTunnels, 'onMoved'> | undefined
  /**
   * Workers share the port of a tunnel. Connections come before its client is connected to this worker, and
   * while it moves from one to another.
   */
  readonly sharesPorts: boolean
  /** Acquires a slot of the tunnel, or sends an error. */
  admit(
    host: string,
    tunnel: OpenTunnel,
    visitor: Visitor,
    send: SendError,
    isRetry: boolean,
  ): ActiveRequest | undefined
}

interface Attempt {
  readonly host: string
  readonly socket: Socket
  readonly acceptedAt: number
  /** How often an edge or a worker has not passed the connection on. */
  readonly failures: number
  readonly failed?: OpenTunnel
}

export function createTcpIngress(options: TcpIngressOptions) {
  const { findTunnel, findQuotaEnd, addresses, remote, sharesPorts, admit } = options

  function begin(attempt: Attempt): void {
    const found = findTunnel(attempt.host, attempt.failed)
    if (found instanceof Promise) void found.then((tunnel) => proceed(attempt, tunnel))
    else proceed(attempt, found)
  }

  function proceed(attempt: Attempt, tunnel: Awaited<ReturnType<typeof findTunnel>>): void {
    const { host, socket, failures } = attempt
    if (socket.destroyed) return
    const close = () => {
      socket.destroy()
    }
    const isOpen = typeof tunnel === 'object' && tunnel.type === 'tcp' && tunnel.isAvailable
    if (!isOpen && sharesPorts && performance.now() - attempt.acceptedAt < OPENING_MS)
      return void setTimeout(begin, OPENING_POLL_MS, attempt)
    if (!isOpen || failures >= ATTEMPTS_MAX) return void close()
    const address = addresses.ofPeer(socket)
    if (!tunnel.access.allowsConnection(address) || findQuotaEnd(tunnel) !== undefined) return void close()
    const visitor = { address, request: undefined, readable: socket, writable: socket, reject: close }
    const active = admit(host, tunnel, visitor, close, failures > 0)
    const client = active?.pickClient()
    if (!active || !client) return void close()
    const fail = () => {
      active.finish()
      begin({ ...attempt, failures: failures + 1, failed: tunnel })
    }
    const stream = openStream(client)
    if (!stream) return void fail()
    active.attach(stream)
    socket.once('close', () => {
      active.finish()
      if (!active.isConnected) stream.destroy()
    })
    if (!(client instanceof RemoteClient)) return void connect(active, socket, stream)
    readVerdict(stream, (verdict, rest) => {
      if (verdict === 'connected') connect(active, socket, stream, rest)
      else {
        if (verdict === 'tunnel_moved') remote?.onMoved(tunnel)
        stream.destroy()
        fail()
      }
    })
  }

  return (host: string, socket: Socket): void => {
    socket.on('error', () => {})
    begin({ host, socket, acceptedAt: performance.now(), failures: 0 })
  }
}

/** `rest` is what the client has sent already. */
function connect(active: ActiveRequest, socket: Socket, stream: YamuxStream, rest?: Buffer): void {
  active.onConnected()
  connectStreams(
    socket,
    stream,
    (bytes) => active.countIn(bytes),
    (bytes) => active.countOut(bytes),
  )
  if (!rest || rest.length === 0) return
  socket.write(rest)
  active.countOut(rest.length)
}

/** Undefined if the connection of the client cannot carry another stream. */
function openStream(client: UpstreamClient): YamuxStream | undefined {
  try {
    return client.openStream()
  } catch {
    return undefined
  }
}
