// Table placement on PostgreSQL with Citus: usage tables are distributed by workspace and colocated. All others
// are plain tables on the coordinator, so that reading and writing them needs no worker.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { isConflict } from './db-errors.ts'
import type { Tables } from './tables.ts'

export type Placement = 'distributed' | 'local'

export const placements: Readonly<Record<keyof Tables, Placement>> = {
  schema_version: 'local',
  workspaces: 'local',
  users: 'local',
  api_keys: 'local',
  edges: 'local',
  audit_log: 'local',
  idempotent_answers: 'local',
  identities: 'local',
  sessions: 'local',
  verifications: 'local',
  two_factors: 'local',
  used_codes: 'local',
  members: 'local',
  links: 'local',
  key_feed_head: 'local',
  key_feed: 'local',
  nodes: 'local',
  maintenance: 'local',
  usage_counters: 'distributed',
  usage_minutes: 'distributed',
  usage_hours: 'distributed',
  usage_days: 'distributed',
}

const DISTRIBUTION_COLUMN = 'workspace_id'

const CONNECT_TIMEOUT_MS = 3_000
/**
 * Requests queue behind a lock that this command waits for. Shorter than PostgreSQL's deadlock timeout, so in a
 * deadlock with a request this command gives way.
 */
const LOCK_TIMEOUT_MS = 800
const LOCK_NOT_AVAILABLE = '55P03'
/** By a command that was killed: its session on the server takes some seconds to notice. */
const IN_PROGRESS = /^another create_distributed_table_concurrently operation is in progress/
const ATTEMPTS_MAX = 100
const RETRY_MS = 500
/** Up to this many rows, copying under a lock takes less than a second. */
const ROWS_UNDER_LOCK_MAX = 100_000

export interface TablePlacement {
  table: string
  placement: Placement
  /** False if the table was placed already. */
  changed: boolean
}

/** The message names the cause and the remedy. */
export class DistributeError extends Error {
  override name = 'DistributeError'
}

/** A table in the metadata of Citus. `local`: a table with foreign keys to reference tables, for example. */
interface CitusTable {
  table: string
  kind: 'distributed' | 'reference' | 'local'
  column: string | null
  group: number
}

/** Each step is a transaction of its own, so that an interrupted run can be repeated. */
export async function distribute(url: string, onProgress: (step: string) => void): Promise<TablePlacement[]> {
  // Not from the pool, whose statement timeout is too short.
  const client = new pg.Client({
    connectionString: url,
    application_name: 'adit distribute',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    keepAlive: true,
  })
  // The query that is under way rejects with the error.
  client.on('error', () => {})
  await client.connect()
  try {
    await requireCitus(client)
    // If this process is killed, the server stops too. Not every platform has the setting.
    await client.query('set client_connection_check_interval = 500').catch(() => {})
    const changed = new Set<string>()
    for (const table of tablesOf('local')) await keepLocal({ client, table, onProgress, changed })
    for (const table of tablesOf('distributed')) await shard({ client, table, onProgress, changed })
    // Copied tables have no statistics.
    if (changed.size > 0) await client.query(`analyze ${[...changed].join(', ')}`)
    return Object.entries(placements).map(([table, placement]) => ({
      table,
      placement,
      changed: changed.has(table),
    }))
  } finally {
    await client.end()
  }
}

const tablesOf = (placement: Placement) =>
  Object.keys(placements).filter((table) => placements[table as keyof Tables] === placement)

async function requireCitus(client: pg.Client): Promise<void> {
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

/** From the catalog; the view `citus_tables` would query every worker for sizes. */
async function readCitusTables(client: pg.Client): Promise<Map<string, CitusTable>> {
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

interface Step {
  client: pg.Client
  table: string
  onProgress: (step: string) => void
  changed: Set<string>
}

/** Undoes the placement of a table, and of those it is connected with by foreign keys: Citus requires that. */
async function keepLocal(step: Step): Promise<void> {
  const { client, table, onProgress, changed } = step
  if (!(await readCitusTables(client)).has(table)) return
  const connected = await readConnected(client, table)
  const others = connected.length - 1
  onProgress(`copying ${table}${others > 0 ? ` and ${others} connected tables` : ''} to the coordinator`)
  await retryLocks(step, async () => {
    await client.query('begin')
    try {
      // All locks before anything is copied, so that a lock timeout wastes no work.
      await client.query(`lock table ${connected.join(', ')} in access exclusive mode`)
      await client.query('select undistribute_table($1::regclass, cascade_via_foreign_keys => true)', [table])
      await client.query('commit')
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    }
  })
  for (const each of connected) changed.add(each)
}

/** The table and those connected with it by foreign keys, directly or not. */
async function readConnected(client: pg.Client, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `with recursive connected (oid) as (
       select $1::regclass::oid
       union
       select case when c.conrelid = connected.oid then c.confrelid else c.conrelid end
       from connected join pg_constraint as c on connected.oid in (c.conrelid, c.confrelid)
       where c.contype = 'f'
     )
     select oid::regclass::text as name from connected order by name`,
    [table],
  )
  return rows.map(({ name }) => name)
}

async function shard(step: Step): Promise<void> {
  const { client, table, onProgress, changed } = step
  const existing = await readCitusTables(client)
  const colocated = findSharded(existing)
  if (!isSharded(table, existing, colocated)) {
    const concurrently = await copiesConcurrently(client, table)
    onProgress(`distributing ${table}${concurrently ? ' while it is written to' : ''}`)
    const call = concurrently ? 'create_distributed_table_concurrently' : 'create_distributed_table'
    await retryLocks(step, () =>
      client.query(`select ${call}($1::regclass, $2, colocate_with => $3)`, [
        table,
        DISTRIBUTION_COLUMN,
        colocated?.table ?? 'none',
      ]),
    )
    changed.add(table)
  }
  // The coordinator keeps the copied rows, invisibly, until they are truncated.
  const { rows } = await client.query('select pg_relation_size($1::regclass) > 0 as "hasRows"', [table])
  if (rows[0]?.hasRows)
    await retryLocks(step, () =>
      client.query('select truncate_local_data_after_distributing_table($1::regclass)', [table]),
    )
}

/**
 * The first usage table that is sharded. The others are colocated with it, so that all usage rows of a workspace
 * are on one worker.
 */
const findSharded = (existing: Map<string, CitusTable>) =>
  tablesOf('distributed')
    .map((table) => existing.get(table))
    .find((found) => found?.column === DISTRIBUTION_COLUMN)

function isSharded(table: string, existing: Map<string, CitusTable>, colocated?: CitusTable): boolean {
  const found = existing.get(table)
  if (!found || found.kind === 'local') return false
  if (found.column === DISTRIBUTION_COLUMN && found.group === colocated?.group) return true
  throw new DistributeError(
    `${table} is already placed differently (${found.kind}${found.column ? ` by ${found.column}` : ''}). ` +
      `Undo that with "select undistribute_table('${table}')", then retry.`,
  )
}

/**
 * Whether the rows are copied without blocking writes. That takes logical replication, and several seconds even
 * for an empty table.
 */
async function copiesConcurrently(client: pg.Client, table: string): Promise<boolean> {
  const { rows } = await client.query(
    `select current_setting('wal_level') = 'logical' and count(*) > ${ROWS_UNDER_LOCK_MAX} as concurrently
     from (select from ${table} limit ${ROWS_UNDER_LOCK_MAX + 1}) as counted`,
  )
  return rows[0]?.concurrently
}

async function retryLocks({ table, onProgress }: Step, work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      await work()
      return
    } catch (error) {
      const { code, message, detail, hint } = error as pg.DatabaseError
      const isLocked = code === LOCK_NOT_AVAILABLE || isConflict(error) || IN_PROGRESS.test(message)
      if (!isLocked || attempt === ATTEMPTS_MAX) {
        const reason = [message, detail, hint].filter(Boolean).join(' ')
        throw new DistributeError(`Could not place ${table}: ${reason} (Completed steps are kept.)`)
      }
      onProgress(`${table} is in use: attempt ${attempt + 1}`)
      await sleep(RETRY_MS * (0.5 + Math.random()))
    }
}
