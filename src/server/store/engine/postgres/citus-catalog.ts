// Reads the catalogs of PostgreSQL and Citus for the distribution of tables.
import type pg from 'pg'

/**
 * Also the maximum number of workers, unless shards are split. A report is merged by a transaction for each
 * shard, so fewer are faster: with 8, 16 and 32 shards, 10,000, 7,000 and 5,000 counters a second.
 */
const SHARDS = 8

/** The message names the cause and the remedy. */
export class DistributeError extends Error {
  override name = 'DistributeError'
}

/** A table in the metadata of Citus. A table with foreign keys to reference tables is `local`. */
export interface CitusTable {
  table: string
  kind: 'distributed' | 'reference' | 'local'
  column: string | null
  group: number
}

export async function requireCitus(client: pg.Client): Promise<void> {
  const { rows } = await client.query(
    `select installed_version is not null as created from pg_available_extensions where name = 'citus'`,
  )
  const [citus] = rows as { created: boolean }[]
  if (!citus)
    throw new DistributeError(
      'The citus extension is not available on this PostgreSQL server. Install it on every machine.',
    )
  if (!citus.created)
    throw new DistributeError(
      'The citus extension is not enabled in this database. Run "create extension citus" as a superuser, ' +
        'then retry.',
    )
}

/** Reads the catalog, because the view `citus_tables` would query every worker for sizes. */
export async function readCitusTables(client: pg.Client): Promise<Map<string, CitusTable>> {
  const { rows } = await client.query<CitusTable>(
    `select c.relname as "table",
       case when p.partkey is not null then 'distributed'
         when p.repmodel = 't' then 'reference' else 'local' end as kind,
       column_to_column_name(p.logicalrelid, p.partkey) as "column",
       p.colocationid as "group"
     from pg_dist_partition as p join pg_class as c on c.oid = p.logicalrelid
     where pg_table_is_visible(c.oid)`,
  )
  return new Map(rows.map((row) => [row.table, row]))
}

/** Citus' own default of 32 counts only if an operator has set it. */
export async function readShardCount(client: pg.Client): Promise<number> {
  const { rows } = await client.query(
    `select case when source = 'default' then ${SHARDS} else setting::integer end as count
     from pg_settings where name = 'citus.shard_count'`,
  )
  return rows[0]?.count ?? SHARDS
}
