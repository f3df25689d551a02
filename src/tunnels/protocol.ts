// What the two ends of a tunnel say to each other to begin with; after that the edge speaks HTTP to the other end.

/** No tunnel's own server is asked for anything below it. */
export const OWN_PATHS = '/.adit/'
/** POST opens a tunnel and DELETE closes it. */
export const TUNNELS_PATH = `${OWN_PATHS}tunnels`
/** Asked for with an upgrade, by which the connection becomes the tunnel's. */
export const CONNECTION_PATH = `${OWN_PATHS}connection`
export const UPGRADE = 'adit-tunnel'

/** The answer to an opening. */
export interface Opened {
  /** A secret: with it comes whoever connects for the tunnel, closes it or opens it again. */
  readonly id: string
  readonly name: string
  readonly host: string
  readonly url: string
  /** As many connections may be kept at the most. */
  readonly connections: number
}

export const authorizationOf = (id: string) => `Tunnel ${id}`
export const idIn = (authorization = '') => /^Tunnel ([\w-]{32})$/.exec(authorization)?.[1]
