import { listNodes } from '../../../server/verification/nodes.ts'
import type { Io } from '../../io.ts'
import { green, yellow } from '../../style.ts'
import { withServices } from '../with-services.ts'

export async function list(io: Io): Promise<void> {
  await io.list([await withServices(listNodes)], {
    columns: {
      ID: (node) => node.id,
      'HOST (PID)': (node) => `${node.host} (${node.pid})`,
      VERSION: (node) => node.version,
      STARTED: (node) => io.time(node.startedAt),
      HEARTBEAT: (node) => io.time(node.lastHeartbeatAt),
      CHANGES: ({ behind }) => (behind === 0 ? green('up to date') : yellow(`${behind} behind`)),
      LEASE: ({ lease }) => (lease === 'held' ? green(lease) : yellow(lease)),
    },
    empty: 'No running nodes.',
    shrink: ['HOST (PID)', 'STARTED', 'HEARTBEAT', 'ID'],
  })
}
