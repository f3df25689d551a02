// The nodes, as the operator sees them.
import { readHead } from '../store/feed.ts'
import { listNodes } from '../store/nodes.ts'
import type { World } from './context.ts'
import { isoOf } from './instants.ts'

/** How often a node that has nothing else to say lets itself be heard. */
export const HEARD_EVERY_MS = 5_000

export async function listAll(world: World) {
  const { db } = world.store
  const rows = await listNodes(db)
  // Afterwards, so that nobody seems to be ahead of it.
  const head = await readHead(db)
  const now = world.clock()
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    pid: row.pid,
    version: row.version,
    startedAt: isoOf(row.started_at),
    heardAt: isoOf(row.heard_at),
    position: row.seen,
    behind: Math.max(0, head.number - row.seen),
    lease: now - row.heard_at < HEARD_EVERY_MS + row.lease_ms ? ('held' as const) : ('ran out' as const),
  }))
}
