// Converts the tunnel minutes that earlier versions wrote, one row each, to rows by hour.
import { deleteBulk } from '../engine/bulk.ts'
import { groupByShard, withCurrentShards } from '../engine/postgres/usage-shards.ts'
import type { Store } from '../engine/store.ts'
import type { TunnelMinute } from '../engine/usage-report.ts'
import { mergeReports } from './read.ts'

type StoredMinute = TunnelMinute & { edgeId: string }

/**
 * Merges up to `limit` rows of `usage_minutes` as if they were reported now, deletes them, and returns how
 * many there were. It can be interrupted anywhere and repeated, while nodes of this and the previous version
 * are serving: merging is idempotent, and a row that has changed meanwhile is not deleted.
 */
export async function convertMinutes(store: Store, limit: number): Promise<number> {
  const rows = await store.db
    .selectFrom('usage_minutes')
    .select(['workspace_id as workspaceId', 'minute', 'edge_id as edgeId', 'open'])
    .orderBy('workspace_id')
    .orderBy('minute')
    .orderBy('edge_id')
    .limit(limit)
    .execute()
  const byWorkspace = Map.groupBy(rows, ({ workspaceId }) => workspaceId)
  await withCurrentShards(store.usageShards, async () => {
    for (const { shard, workspaceIds } of await groupByShard(store.usageShards, byWorkspace.keys())) {
      const ofShard = workspaceIds.flatMap((id) => byWorkspace.get(id) ?? [])
      await store.usageShards.run(shard, () => convert(store, ofShard))
    }
  })
  return rows.length
}

async function convert(store: Store, rows: readonly StoredMinute[]): Promise<void> {
  const byEdge = Map.groupBy(rows, ({ edgeId }) => edgeId)
  const reports = [...byEdge].map(([edgeId, tunnels]) => ({ edgeId, epoch: '', counters: [], tunnels }))
  await mergeReports(store, reports)
  const isDistributed = await store.usageShards.isDistributed()
  await store.transaction((db) =>
    deleteBulk(
      { db, isDistributed },
      'usage_minutes',
      { workspace_id: 'text', minute: 'bigint', edge_id: 'text', open: 'bigint' },
      rows.map(({ workspaceId, minute, edgeId, open }) => [workspaceId, minute, edgeId, open]),
    ),
  )
}
