// The nodes, as the operator sees them.
import { readHead } from '../store/change-log.ts'
import { listNodes } from '../store/nodes.ts'
import type { Services } from './context.ts'
import { isoOf } from './timestamps.ts'

/** How often a node that has nothing else to say lets itself be heard. */
export const HEARTBEAT_MS = 5_000

export async function listAll(services: Services) {
  const { db } = services.store
  const rows = await listNodes(db)
  // Afterwards, so that nobody seems to be ahead of it.
  const head = await readHead(db)
  const now = services.clock()
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    pid: row.pid,
    version: row.version,
    startedAt: isoOf(row.started_at),
    heardAt: isoOf(row.heard_at),
    position: row.seen,
    behind: Math.max(0, head.number - row.seen),
    lease: now - row.heard_at < HEARTBEAT_MS + row.lease_ms ? ('held' as const) : ('ran out' as const),
  }))
}
