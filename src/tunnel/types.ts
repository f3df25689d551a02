// The types of the library, written out, so that its declarations need no other part.

export interface OpenTunnelOptions {
  /** URL of the server, which names the edge, e.g. `https://adit.example.com`. */
  readonly url?: string
  /** URL of the edge, instead of `url`. */
  readonly edge?: string
  /** To how many edges the tunnel keeps a connection, if there are others: 1 to 4, and 2 by default. */
  readonly edges?: number
  /** URL of an HTTP proxy for connections to server and edge, e.g. `http://user:password@proxy:3128`. */
  readonly proxy?: string
  /** An API key of the workspace. */
  readonly apiKey: string
  /** The local server: its port, `host:port`, a URL such as `https://localhost:8443`, or `unix:<path>`. */
  readonly target: number | string
  /** Accept any certificate of an `https://` target. */
  readonly insecure?: boolean
  /** Certificates in PEM that an `https://` target is verified with, instead of those of the system. */
  readonly ca?: string
  readonly type?: 'http' | 'tcp'
  /** The first part of the public host name; a random one by default. */
  readonly name?: string
  /** Let several clients share the name and its traffic. */
  readonly pool?: boolean
  /** The user and password that visitors need; for HTTP tunnels. */
  readonly basicAuth?: { readonly user: string; readonly password: string }
  /** Addresses and networks that are allowed, in CIDR notation; all by default. */
  readonly allowIp?: readonly string[]
  /** The Host header that the local server gets: `rewrite` for that of the target, or a host. */
  readonly hostHeader?: string
  /** Aborts the opening, or closes the tunnel. */
  readonly signal?: AbortSignal
  /** How long requests in progress may take after `close`; 10,000 by default. */
  readonly drainMs?: number
}

export interface TunnelEvents {
  /** A request of an HTTP tunnel was proxied. */
  request: [request: { method: string; path: string; status: number; ms: number }]
  /** A connection of a TCP tunnel has closed. */
  connection: [connection: { bytesIn: number; bytesOut: number; ms: number }]
  /** The connection to the edge is lost, and is opened again. */
  lost: [reason: string]
  /** The connection is open again. */
  reconnected: []
  /** The edge has a message for you, such as a quota that is used up. */
  notice: [message: string]
  /** The local server cannot be reached. */
  unreachable: [message: string]
  /** The tunnel is closed: by you, or with an error by the edge. */
  close: [error: Error | undefined]
}
