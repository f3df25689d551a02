// The protocol between tunnel client and edge. The client opens a tunnel by a POST, then connects by HTTP
// upgrades; on each of those connections the edge is the HTTP client.

/** Paths under it are the edge's own and never reach a local server. */
export const OWN_PATHS = '/.adit/'
/** POST opens a tunnel, DELETE closes it. */
export const TUNNELS_PATH = `${OWN_PATHS}tunnels`
/** A GET with `Upgrade` turns the connection into one of the tunnel's. */
export const CONNECTION_PATH = `${OWN_PATHS}connection`
export const UPGRADE = 'adit-tunnel'

/** An open tunnel, as the edge describes it to its client. */
export interface Opened {
  /** Authenticates connections of the tunnel, closing it and reopening it. */
  readonly secret: string
  readonly name: string
  readonly host: string
  readonly url: string
  /** Maximum number of connections. */
  readonly connections: number
}

/** In JSON the secret is called `id`, as in pipenet's protocol. */
export type OpenedJson = Omit<Opened, 'secret'> & { readonly id: string }

export const formatAuthorization = (secret: string) => `Tunnel ${secret}`
export const parseAuthorization = (header = '') => /^Tunnel ([\w-]{32})$/.exec(header)?.[1]
