// Merges reports in one lane for each shard, in parallel. A report is acknowledged after the last commit. If
// a shard fails, the others stay committed: merging is idempotent, and the edge sends the report again.

import { splitByShard, type UsageShard, withCurrentShards } from '../engine/postgres/usage-shards.ts'
import type { Store } from '../engine/store.ts'
import type { RejectedCounter } from '../engine/usage-limits.ts'
import type { ParsedReport } from '../engine/usage-report.ts'
import { createUsageMerger, type MergeUsage } from './merger.ts'

type Merge = Parameters<typeof createUsageMerger>[0]

/**
 * Concurrent merges on PostgreSQL without Citus: while one waits for the disk or the node, others can use the
 * database's processors. Fewer than connections, and more would make the groups smaller. SQLite has one
 * writer, Citus has many shards.
 */
const POSTGRES_CONCURRENCY = 3

interface Lane {
  /** As found last: a shard keeps its id when it is moved to another worker. */
  shard: UsageShard
  merge: MergeUsage
}

export function createUsageLanes({ engine, usageShards: shards }: Store, merge: Merge): MergeUsage {
  const lanes = new Map<string, Lane>()

  function laneOf(shard: UsageShard): Lane {
    const concurrency = engine === 'postgres' && shard.id === '' ? POSTGRES_CONCURRENCY : 1
    const admit = async (start: () => Promise<void>) => {
      // Statements of SQLite are synchronous: no other report would be read until this one is committed.
      if (engine === 'sqlite') await new Promise((resolve) => setImmediate(resolve))
      return shards.run(lane.shard, start)
    }
    const lane: Lane = lanes.get(shard.id) ?? {
      shard,
      merge: createUsageMerger(merge, { concurrency, admit }),
    }
    lane.shard = shard
    lanes.set(shard.id, lane)
    return lane
  }

  async function mergeParts(report: ParsedReport): Promise<RejectedCounter[]> {
    const parts = await splitByShard(shards, report)
    const results = await Promise.allSettled(parts.map((part) => laneOf(part.shard).merge(part.report)))
    const rejected: RejectedCounter[][] = []
    for (const result of results) {
      if (result.status === 'rejected') throw result.reason
      rejected.push(result.value)
    }
    return rejected.flat()
  }

  return (report) => withCurrentShards(shards, () => mergeParts(report))
}
