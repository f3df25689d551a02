// Finds where the usage of a workspace is stored: on Citus in a shard of a worker, elsewhere in one place.
// Reports are split by shard, so that each transaction involves one worker, and shards do not wait for each
// other.
import { type QueryExecutorProvider, sql } from 'kysely'
import { isMultiShard } from '../errors.ts'
import type { ParsedReport } from '../usage-report.ts'
import { createWorkerGate } from './worker-gate.ts'

export interface UsageShard {
  /** '' if the usage tables are not distributed. */
  id: string
  /** Group of the worker in Citus' metadata. */
  worker: string
}

export interface UsageShards {
  /** Whether the usage tables are distributed. */
  isDistributed(): Promise<boolean>
  /** The shards by workspace. */
  find(workspaceIds: Iterable<string>): Promise<ReadonlyMap<string, UsageShard>>
  /** Call it after an error that shows that the cached shards are stale. */
  invalidate(): void
  /** Runs work on a shard. Rejects immediately while its worker fails. */
  run<T>(shard: UsageShard, work: () => Promise<T>): Promise<T>
}

const UNDISTRIBUTED: UsageShard = { id: '', worker: '' }
/** Shards are rarely split, and tables are distributed once. A stale entry costs a failed transaction. */
const CACHE_MS = 60_000
const CACHED_MAX = 200_000

export const undistributed: UsageShards = {
  isDistributed: async () => false,
  find: async (workspaceIds) => new Map([...workspaceIds].map((id) => [id, UNDISTRIBUTED])),
  invalidate() {},
  run: (_shard, work) => work(),
}

/** For PostgreSQL, with Citus or without. */
export function createUsageShards(db: QueryExecutorProvider): UsageShards {
  const gate = createWorkerGate()
  let cached = new Map<string, UsageShard>()
  let distributedTable: Promise<string | undefined> | undefined
  let readAt = Number.NEGATIVE_INFINITY

  function invalidate(): void {
    cached = new Map()
    distributedTable = undefined
    readAt = performance.now()
  }

  async function findTable(): Promise<string | undefined> {
    if (performance.now() - readAt > CACHE_MS || cached.size > CACHED_MAX) invalidate()
    distributedTable ??= readDistributedTable(db)
    const read = distributedTable
    try {
      return await read
    } catch (error) {
      if (distributedTable === read) distributedTable = undefined
      throw error
    }
  }

  return {
    isDistributed: async () => (await findTable()) !== undefined,
    invalidate,
    run: ({ worker }, work) => gate(worker, work),
    async find(workspaceIds) {
      const table = await findTable()
      if (table === undefined) return undistributed.find(workspaceIds)
      // `invalidate` replaces `cached`, so a read that began before is not cached.
      const cache = cached
      const ids = [...workspaceIds]
      const missing = ids.filter((id) => !cache.has(id))
      const read = missing.length > 0 ? await readShards(db, table, missing) : []
      for (const [id, shard] of read) cache.set(id, shard)
      return new Map(ids.map((id) => [id, cache.get(id) ?? UNDISTRIBUTED]))
    },
  }
}

/** Finds one distributed usage table. The others are colocated with it, so any of them will do. */
async function readDistributedTable(db: QueryExecutorProvider): Promise<string | undefined> {
  const { rows: tables } = await sql<{ found: boolean }>`
    select to_regclass('pg_catalog.pg_dist_partition') is not null as found`.execute(db)
  if (!tables[0]?.found) return undefined
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_dist_partition as p join pg_class as c on c.oid = p.logicalrelid
    where c.relname like 'usage\\_%' and p.partkey is not null and pg_table_is_visible(c.oid)
    limit 1`.execute(db)
  return rows[0]?.name
}

/** The coordinator computes the shards from its metadata. */
async function readShards(
  db: QueryExecutorProvider,
  table: string,
  workspaceIds: readonly string[],
): Promise<[string, UsageShard][]> {
  const { rows } = await sql<{ workspace: string; shard: string; worker: string }>`
    select located.workspace, located.shard::text as shard, placement.groupid::text as worker
    from (
      select workspace, get_shard_id_for_distribution_column(cast(${table} as regclass), workspace) as shard
      from unnest(cast(${workspaceIds} as text[])) as workspace
    ) as located
    join pg_dist_placement as placement on placement.shardid = located.shard`.execute(db)
  return rows.map(({ workspace, shard, worker }) => [workspace, { id: shard, worker }])
}

/**
 * Repeats the work once if the cached shards were stale: a shard was split, or the tables were distributed.
 * So the work must be idempotent, and find the shards itself.
 */
export async function withCurrentShards<T>(shards: UsageShards, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isMultiShard(error)) throw error
    shards.invalidate()
    return work()
  }
}

/** The workspaces of each shard. */
export async function groupByShard(shards: UsageShards, workspaceIds: Iterable<string>) {
  const found = await shards.find(workspaceIds)
  return [...Map.groupBy(found, ([, shard]) => shard.id).values()].map((group) => ({
    shard: group[0]?.[1] ?? UNDISTRIBUTED,
    workspaceIds: group.map(([id]) => id),
  }))
}

/** Runs work on the usage of one workspace. */
export async function runOnShard<T>(
  shards: UsageShards,
  workspaceId: string,
  work: () => Promise<T>,
): Promise<T> {
  const found = await shards.find([workspaceId])
  return shards.run(found.get(workspaceId) ?? UNDISTRIBUTED, work)
}

interface ShardPart {
  shard: UsageShard
  report: ParsedReport
}

/** Splits a report into one part for each shard. */
export async function splitByShard(shards: UsageShards, report: ParsedReport): Promise<ShardPart[]> {
  if (!(await shards.isDistributed())) return [{ shard: UNDISTRIBUTED, report }]
  const items = [...report.counters, ...report.tunnels]
  const found = await shards.find(new Set(items.map(({ workspaceId }) => workspaceId)))
  const all = new Map([...found.values()].map((shard) => [shard.id, shard]))
  if (all.size <= 1) return [...all.values()].map((shard) => ({ shard, report }))
  const shardId = (item: { workspaceId: string }) => found.get(item.workspaceId)?.id as string
  const counters = Map.groupBy(report.counters, shardId)
  const tunnels = Map.groupBy(report.tunnels, shardId)
  return [...all].map(([id, shard]) => ({
    shard,
    report: { ...report, counters: counters.get(id) ?? [], tunnels: tunnels.get(id) ?? [] },
  }))
}
