import { listAllOpen } from '../../server/domain/tunnels/open.ts'
import { formatBytes } from '../bytes.ts'
import type { Io } from '../io.ts'
import { describeAccess } from '../tunnels/describe-access.ts'
import { withServices } from './with-services.ts'

export async function list(io: Io): Promise<void> {
  await withServices((services) =>
    io.list(listAllOpen(services), {
      columns: {
        WORKSPACE: (tunnel) => tunnel.workspace,
        URL: (tunnel) => tunnel.url,
        EDGES: (tunnel) => tunnel.edges.map(({ name }) => name).join(', '),
        KEY: (tunnel) => tunnel.key.label || tunnel.key.id,
        CLIENT: (tunnel) => tunnel.client.address,
        // Rules of the client; those of a name are shown in the dashboard.
        ACCESS: ({ access: { basicAuth, allowIp } }) => describeAccess({ hasPassword: basicAuth, allowIp }),
        OPENED: (tunnel) => io.time(tunnel.openedAt),
        REQUESTS: (tunnel) => String(tunnel.requests),
        IN: (tunnel) => formatBytes(tunnel.bytesIn),
        OUT: (tunnel) => formatBytes(tunnel.bytesOut),
        STREAMS: (tunnel) => String(tunnel.streams),
      },
      empty: 'No open tunnels.',
      shrink: ['ACCESS', 'KEY', 'CLIENT', 'EDGES', 'OPENED', 'WORKSPACE'],
    }),
  )
}
