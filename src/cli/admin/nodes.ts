import { listAll } from '../../domain/nodes.ts'
import type { Io } from '../io.ts'
import { table } from '../table.ts'
import { withServices } from './with-services.ts'

export async function list(io: Io): Promise<void> {
  const nodes = await withServices(io, listAll)
  const rows = nodes.map((node) => [
    node.id,
    `${node.host} (${node.pid})`,
    node.version,
    node.startedAt,
    node.heardAt,
    node.behind === 0 ? 'in step' : `${node.behind} behind`,
    node.lease,
  ])
  io.data(nodes, table(['ID', 'HOST (PID)', 'VERSION', 'STARTED', 'HEARD', 'FEED', 'LEASE'], rows))
}
