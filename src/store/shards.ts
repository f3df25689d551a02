// Shards of the usage tables, where they are distributed by Citus. A statement on one shard locks nothing on
// the others, and needs only one worker.
import { sql } from 'kysely'
import type { Store } from './store.ts'

/** Whether the usage tables are distributed. */
export async function isDistributed({ engine, db }: Store): Promise<boolean> {
  if (engine === 'sqlite') return false
  const { rows } = await sql`
    select from pg_class where relname = 'pg_dist_partition' and relkind = 'r'
      and pg_table_is_visible(oid)`.execute(db)
  if (rows.length === 0) return false
  const { rows: distributed } = await sql`
    select from pg_dist_partition
    where logicalrelid = cast('usage_counters' as regclass) and partkey is not null`.execute(db)
  return distributed.length > 0
}

/** The workspaces of each shard. */
export async function groupByShard({ db }: Store, workspaceIds: readonly string[]): Promise<string[][]> {
  const { rows } = await sql<{ ids: string[] }>`
    select array_agg(id) as ids from unnest(cast(${workspaceIds} as text[])) as id
    group by get_shard_id_for_distribution_column('usage_counters', id)`.execute(db)
  return rows.map(({ ids }) => ids)
}
