import { listNodes } from '../../directory/nodes.ts'
import type { Io } from '../io.ts'
import { table } from '../table.ts'
import { withServices } from './with-services.ts'

export async function list(io: Io): Promise<void> {
  const nodes = await withServices(io, listNodes)
  const rows = nodes.map((node) => [
    node.id,
    `${node.host} (${node.pid})`,
    node.version,
    node.startedAt,
    node.lastHeartbeatAt,
    node.behind === 0 ? 'up to date' : `${node.behind} behind`,
    node.lease,
  ])
  io.data(
    nodes,
    table(['ID', 'HOST (PID)', 'VERSION', 'STARTED', 'LAST HEARTBEAT', 'CHANGE LOG', 'LEASE'], rows),
  )
}
