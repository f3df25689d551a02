// Commits reports through one queue for each shard, in parallel. A report is acknowledged after the last
// commit. If a shard fails, the others stay committed: merging is idempotent, and the edge sends the report
// again.

import { splitByShard, type UsageShard, withCurrentShards } from '../engine/postgres/usage-shards.ts'
import type { Store } from '../engine/store.ts'
import type { RejectedCounter } from '../engine/usage-limits.ts'
import type { ParsedReport } from '../engine/usage-report.ts'
import { type CommitUsage, createGroupCommit } from './group-commit.ts'

type Commit = Parameters<typeof createGroupCommit>[0]

/**
 * Concurrent commits on PostgreSQL without Citus: while one waits for the disk or the node, others can use
 * the database's processors. More would make the groups smaller. SQLite has one writer, Citus has many
 * shards.
 */
const POSTGRES_CONCURRENCY = 3

interface ShardQueue {
  /** The shard as last read: it keeps its id when it is moved to another worker. */
  shard: UsageShard
  commit: CommitUsage
}

export function createShardQueues({ engine, usageShards: shards }: Store, commit: Commit): CommitUsage {
  const queues = new Map<string, ShardQueue>()

  function getQueue(shard: UsageShard): ShardQueue {
    const concurrency = engine === 'postgres' && shard.id === '' ? POSTGRES_CONCURRENCY : 1
    const admit = async (start: () => Promise<void>) => {
      // SQLite is synchronous, so without this no other report would be read before the commit.
      if (engine === 'sqlite') await new Promise((resolve) => setImmediate(resolve))
      return shards.run(queue.shard, start)
    }
    const queue: ShardQueue = queues.get(shard.id) ?? {
      shard,
      commit: createGroupCommit(commit, { concurrency, admit }),
    }
    queue.shard = shard
    queues.set(shard.id, queue)
    return queue
  }

  async function commitParts(report: ParsedReport): Promise<RejectedCounter[]> {
    const parts = await splitByShard(shards, report)
    const results = await Promise.allSettled(parts.map((part) => getQueue(part.shard).commit(part.report)))
    const rejected: RejectedCounter[][] = []
    for (const result of results) {
      if (result.status === 'rejected') throw result.reason
      rejected.push(result.value)
    }
    return rejected.flat()
  }

  return (report) => withCurrentShards(shards, () => commitParts(report))
}
