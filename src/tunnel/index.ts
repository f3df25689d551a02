// The tunnel client as a library, `adit-tunnel`. It needs no package at run time, and Node 20.
export { openTunnel, type Tunnel, TunnelError } from './open.ts'
export type { OpenTunnelOptions, TunnelEvents } from './types.ts'
