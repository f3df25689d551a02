// SQL of the edges that may carry traffic for a key or a workspace, which a revocation waits for: those with
// an open tunnel, and those that closed one lately and may open it again while they cannot claim it.
import { sql } from 'kysely'
import { executeBulk } from '../engine/bulk.ts'
import { nowIn, nowText } from '../engine/clock.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Tx } from '../engine/store.ts'

/**
 * Edges open names again for 10 minutes after they closed them, and carry their traffic until the lease ends.
 */
const RECENT_MS = 11 * 60_000
/**
 * A lease counts for longer than it says: a crash of the database may have undone its last renewals, and its
 * clock may have been set forward.
 */
export const HELD_LONGER_MS = 10_000

/** Records the keys of tunnels that the edge has closed, and deletes those that it cannot use any more. */
export async function recordRecentKeys(
  tx: Tx,
  edgeId: string,
  closed: readonly { key_id: string }[],
): Promise<void> {
  if (closed.length === 0) return
  const keyIds = [...new Set(closed.map(({ key_id }) => key_id))].sort()
  await executeBulk(
    tx,
    { edge_id: 'text', key_id: 'text' },
    keyIds.map((keyId) => [edgeId, keyId]),
    `insert into recent_keys (edge_id, key_id, closed_at) select edge_id, key_id, ${nowText(tx)} from input
     where true on conflict (edge_id, key_id) do update set closed_at = excluded.closed_at`,
  )
  await executeBulk(
    tx,
    { edge_id: 'text' },
    [[edgeId]],
    `delete from recent_keys where edge_id in (select edge_id from input)
       and closed_at < ${nowText(tx)} - ${RECENT_MS}`,
  )
}

/** An edge that may carry traffic, with the position in the change log that it has acknowledged. */
interface Holder {
  edgeId: string
  sequence: number
  checksum: string
  isInLog: boolean
  /** Whether an earlier process of the edge may carry traffic, too. It acknowledges nothing. */
  hasPrevious: boolean
}

/** The edges with a lease that may carry traffic for a key, or for a workspace. */
export async function findHolders(db: Db, subjectId: string): Promise<Holder[]> {
  const rows = await selectHolders(db, { subjectId })
  return rows.map(({ entry, previous, ...row }) => ({
    ...row,
    isInLog: entry !== null,
    hasPrevious: Boolean(previous),
  }))
}

interface HolderRow extends Pick<Holder, 'edgeId' | 'sequence' | 'checksum'> {
  entry: number | null
  previous: boolean | number
}

const selectHolders = statement((db: Db, { subjectId }: Placeholders<{ subjectId: string }>) => {
  const now = nowIn(db)
  const heldSince = sql`${now} - ${sql.lit(HELD_LONGER_MS)}`
  const recentSince = sql`${now} - ${sql.lit(RECENT_MS)}`
  return sql<HolderRow>`
    select session.edge_id as "edgeId", coalesce(session.acknowledged_sequence, 0) as sequence,
      coalesce(session.acknowledged_checksum, '') as checksum, entry.sequence as entry,
      session.previous_lease_until > ${heldSince} as previous
    from edge_sessions as session
    left join change_log as entry on entry.sequence = session.acknowledged_sequence
      and entry.checksum = session.acknowledged_checksum
    where session.edge_id in (
      select tunnel.edge_id from api_keys join open_tunnels as tunnel
        on tunnel.workspace_id = api_keys.workspace_id and tunnel.key_id = api_keys.id
        where api_keys.id = ${subjectId}
      union select edge_id from open_tunnels where workspace_id = ${subjectId}
      union select edge_id from recent_keys where key_id = ${subjectId} and closed_at > ${recentSince}
      union select recent.edge_id from api_keys join recent_keys as recent on recent.key_id = api_keys.id
        where api_keys.workspace_id = ${subjectId} and recent.closed_at > ${recentSince}
    ) and (session.acknowledged_sequence is not null and session.lease_until > ${heldSince}
      or session.previous_lease_until > ${heldSince})`
})
