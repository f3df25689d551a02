// The protocol between tunnel client and edge: one WebSocket that carries yamux. docs/edges/protocol.md
// describes it.
import type { RequestProblem } from './problems.ts'

/** The edge serves the paths under this prefix itself. They never reach a local server. */
export const OWN_PATHS = '/.adit/'
/** A GET with `Upgrade: websocket` opens a tunnel. */
export const CONNECT_PATH = `${OWN_PATHS}connect`
export const SUBPROTOCOL = 'adit-tunnel.v1'
/** The header with the TunnelRequest, as JSON in ASCII. */
export const TUNNEL_HEADER = 'adit-tunnel'

/** How each side detects that its peer is gone. The interval is well below the idle timeouts of proxies. */
export const KEEP_ALIVE = { intervalMs: 15_000, timeoutMs: 10_000 }

export type TunnelType = 'http' | 'tcp'

/** Limits who may use the tunnel. */
export interface RequestedAccess {
  /** HTTP tunnels only. The edge keeps a hash of the password. */
  readonly basicAuth?: { readonly user: string; readonly password: string }
  /** Addresses and networks in CIDR notation; none means that all are allowed. */
  readonly allowIp?: readonly string[]
}

/** What the client asks for. */
export interface TunnelRequest {
  readonly type?: TunnelType
  /** A random name if undefined. */
  readonly name?: string | undefined
  /** Join the clients of the workspace that already serve the name. */
  readonly pool?: boolean | undefined
  /** A secret of the connection: a new connection replaces an earlier one with the same secret. */
  readonly resume?: string | undefined
  /** A secret of the client, which all its connections share: at one edge or several, they are one tunnel. */
  readonly session?: string | undefined
  /** Name and version of the client. */
  readonly client?: string | undefined
  readonly access?: RequestedAccess | undefined
  /** Origin of the local server of an HTTP tunnel, e.g. `http://localhost:3000`. */
  readonly target?: string | undefined
  /** The Host that the local server gets: `rewrite` for that of the target, or a host. Needs a target. */
  readonly hostHeader?: string | undefined
  /** How many connections to the local server the edge may keep open without a request. */
  readonly idleConnections?: number | undefined
  /** The edge has asked for this connection, and closes it when it is not used. */
  readonly extra?: boolean | undefined
}

/** An open tunnel, as the edge describes it to its client. */
export interface Opened {
  readonly type: TunnelType
  readonly url: string
  readonly host: string
  readonly name: string
  /** What the rules of the client and of the name require. Edges that do not support access rules omit it. */
  readonly access?: { readonly basicAuth: boolean; readonly allowIp: boolean }
  /** The public URL of the edge, if it has one. */
  readonly edge?: string | undefined
  /** Public URLs of other edges at which the client may open further connections, the best first. */
  readonly edges?: readonly string[] | undefined
}

/** A request that the edge has proxied to the client. */
export type ProxiedRequest = RequestProblem & {
  readonly method: string
  readonly path: string
  /** 101 for upgrades such as WebSockets, 499 if the client closed the connection before the response. */
  readonly status: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Time until the last byte of the response. */
  readonly ms: number
}

/** A closed connection of a TCP tunnel. */
export interface ProxiedConnection {
  readonly bytesIn: number
  readonly bytesOut: number
  readonly ms: number
}

/** Why the edge closes the tunnel for good: the client must not reconnect. */
export interface TunnelClosure {
  readonly reason: string
  /** For the user of the client. */
  readonly message: string
}

/** Events that the edge sends, a JSON object per line, on the first stream that it opens. */
export type TunnelEvent =
  | ({ readonly event: 'open' } & Opened)
  | ({ readonly event: 'request' } & ProxiedRequest)
  | ({ readonly event: 'connection' } & ProxiedConnection)
  | { readonly event: 'notice'; readonly message: string }
  | { readonly event: 'edges'; readonly edges: readonly string[] }
  /** Open an extra connection to this edge. */
  | { readonly event: 'connect' }
  | ({ readonly event: 'close' } & TunnelClosure)

export const EVENT_BYTES_MAX = 16 * 1024
