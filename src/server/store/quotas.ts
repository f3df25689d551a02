// SQL of quotas: the columns of workspaces, and their usage.
import { executeBulk, inWorkspaces } from './engine/bulk.ts'
import { groupByShard, withCurrentShards } from './engine/postgres/usage-shards.ts'
import type { Db, Store, Tx } from './engine/store.ts'
import { openTunnels } from './tunnels/lists.ts'
import { readDays } from './usage/commit.ts'
import { quotaColumns, type WorkspaceRow } from './workspaces.ts'

type QuotaRow = Pick<WorkspaceRow, 'id' | (typeof quotaColumns)[number]>

export async function updateQuotas(db: Tx, { id, ...columns }: Partial<QuotaRow> & { id: string }) {
  await db.updateTable('workspaces').set(columns).where('id', '=', id).execute()
}

export const listQuotas = (db: Db, workspaceIds: readonly string[]): Promise<QuotaRow[]> =>
  executeBulk(
    db,
    { id: 'text' },
    workspaceIds.map((id) => [id]),
    `select ${['id', ...quotaColumns].map((column) => `workspaces.${column}`).join(', ')}
     from input join workspaces on workspaces.id = input.id`,
  )

/**
 * Workspaces that have reached a quota of the current month, and those with a level of a later month than the
 * one that ends at `monthEnd`, in the order of their ids.
 */
export async function listReached(
  db: Db,
  { now, monthEnd, after, limit }: { now: number; monthEnd: number; after: string; limit: number },
): Promise<string[]> {
  const rows = await db
    .selectFrom('workspaces')
    .select('id')
    .where('usage_level', 'is not', null)
    .where('usage_level_until', '>', now)
    .where((row) => row.or([row('usage_level', '=', 'reached'), row('usage_level_until', '>', monthEnd)]))
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}

interface UsageRange {
  workspaceId: string
  /** Starts of days; `until` is excluded. */
  from: number
  until: number
}

export interface ApproximateUsage {
  bytes: number
  requests: number
}

/**
 * Sums of many workspaces, as floating point numbers. If a shard fails, its workspaces are missing, and
 * `onFailure` gets the error.
 */
export const estimateUsage = (
  { db, usageShards }: Store,
  ranges: readonly UsageRange[],
  onFailure: (error: unknown) => void,
): Promise<Map<string, ApproximateUsage>> =>
  withCurrentShards(usageShards, async () => {
    const isDistributed = await usageShards.isDistributed()
    const byId = new Map(ranges.map((range) => [range.workspaceId, range]))
    const sums = new Map<string, ApproximateUsage>()
    const groups = await groupByShard(usageShards, byId.keys())
    const results = await Promise.allSettled(
      groups.map(async ({ shard, workspaceIds }) => {
        const shardRanges = workspaceIds.map((id) => byId.get(id) as UsageRange)
        const rows = await usageShards.run(shard, () => sumDays(db, isDistributed, shardRanges))
        for (const id of workspaceIds) sums.set(id, { bytes: 0, requests: 0 })
        for (const { id, bytes, requests } of rows) sums.set(id, { bytes, requests })
      }),
    )
    for (const result of results) if (result.status === 'rejected') onFailure(result.reason)
    return sums
  })

/** All workspaces must belong to one shard. Floating point sums cannot overflow. */
const sumDays = (db: Db, isDistributed: boolean, ranges: readonly UsageRange[]) =>
  executeBulk<ApproximateUsage & { id: string }>(
    db,
    { workspace_id: 'text', first: 'bigint', last: 'bigint' },
    ranges.map(({ workspaceId, from, until }) => [workspaceId, from, until]),
    `select d.workspace_id as id, sum(cast(d.requests as double precision)) as requests,
       sum(cast(d.bytes_in as double precision) + d.bytes_out) as bytes
     from input cross join usage_days as d
     where d.workspace_id = input.workspace_id and d.day >= input.first and d.day < input.last
       ${inWorkspaces({ isDistributed }, 'd')}
     group by d.workspace_id`,
  )

/** The exact sums of one workspace; at most 31 rows are read. */
export async function readMonth(
  db: Db,
  { workspaceId, from, until }: UsageRange,
): Promise<{ bytes: bigint; requests: bigint }> {
  const sums = { bytes: 0n, requests: 0n }
  for (const { bytesIn, bytesOut, requests } of await readDays(db, workspaceId, from, until - 1)) {
    sums.bytes += bytesIn + bytesOut
    sums.requests += requests
  }
  return sums
}

/** Open tunnels of each workspace, at all edges, except those with these ids. */
export async function countOpenTunnels(
  db: Db,
  workspaceIds: readonly string[],
  except: readonly string[] = [],
): Promise<Map<string, number>> {
  const query = openTunnels(db)
    .select((row) => ['tunnel.workspace_id', row.fn.count('tunnel.tunnel_id').distinct().as('count')])
    .where('tunnel.workspace_id', 'in', workspaceIds)
  const counted = except.length > 0 ? query.where('tunnel.tunnel_id', 'not in', except) : query
  const rows = await counted.groupBy('tunnel.workspace_id').execute()
  return new Map(rows.map((row) => [row.workspace_id, Number(row.count)]))
}
