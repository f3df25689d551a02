import type { TunnelInfo } from '../../../../src/inspector/api.ts'
import { LOCAL_PORT } from '../../../../src/lib/client-commands.ts'

/** The command that opens the tunnels again, as far as it is known here. */
export function startCommand(tunnels: readonly TunnelInfo[]): string {
  const port = /:(\d+)\/?$/.exec(tunnels[0]?.target ?? '')?.[1] ?? LOCAL_PORT
  return tunnels.length > 1 ? 'adit start' : `adit tunnel ${port} --inspect`
}
