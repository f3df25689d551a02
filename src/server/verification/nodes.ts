// Node registration: each node that may use its cache has a row in the nodes table. A revocation waits for
// these nodes.
import { type Position, readHead } from '../store/change-log/entries.ts'
import { acknowledge, deleteNode, insertNode, listNodes as listRows } from '../store/change-log/nodes.ts'
import type { Store } from '../store/engine/store.ts'
import { LEASE_MS } from './lease.ts'

/** How often a node updates its row while there are no changes to acknowledge. */
export const HEARTBEAT_MS = 5_000

export interface NodeIdentity {
  id: string
  host: string
  pid: number
  version: string
}

export function createRegistration(store: Store, clock: () => number, node: NodeIdentity) {
  const startedAt = clock()
  return {
    /** Not on the control connection: a commit that waits for a standby would block readiness checks. */
    register: (position: Position) =>
      store.transaction((db) =>
        insertNode(db, {
          ...node,
          position,
          lease_ms: LEASE_MS,
          started_at: startedAt,
          heartbeat_at: clock(),
        }),
      ),
    /** Also a heartbeat. Returns the head of the change log; undefined if the row is gone. */
    acknowledge: (position: Position) => acknowledge(store.controlConnection, node.id, position, clock()),
    /** Afterwards, revocations do not wait for this node. */
    deregister: () => store.transaction((db) => deleteNode(db, node.id)),
  }
}

/** For `adit admin nodes`. */
export async function listNodes({ store, clock }: { store: Store; clock: () => number }) {
  const rows = await listRows(store.db)
  // Read after the nodes, so that none appears to be ahead of it.
  const head = await readHead(store.db)
  const now = clock()
  return rows.map((row) => ({
    id: row.id,
    host: row.host,
    pid: row.pid,
    version: row.version,
    startedAt: new Date(row.started_at).toISOString(),
    lastHeartbeatAt: new Date(row.heartbeat_at).toISOString(),
    position: row.position.sequence,
    behind: Math.max(0, head.sequence - row.position.sequence),
    lease: now - row.heartbeat_at < HEARTBEAT_MS + row.lease_ms ? ('held' as const) : ('expired' as const),
  }))
}
