// Table placement on PostgreSQL with Citus: usage tables are distributed by workspace; all others are small
// and become reference tables, replicated to every worker.
import pg from 'pg'
import type { Tables } from './tables.ts'

export type Placement = 'distributed' | 'reference'

/** In this order: a reference table may only have foreign keys to tables that are placed already. */
export const placements: Readonly<Record<keyof Tables, Placement>> = {
  schema_version: 'reference',
  workspaces: 'reference',
  users: 'reference',
  api_keys: 'reference',
  edges: 'reference',
  audit_log: 'reference',
  idempotent_answers: 'reference',
  identities: 'reference',
  sessions: 'reference',
  verifications: 'reference',
  two_factors: 'reference',
  used_codes: 'reference',
  members: 'reference',
  links: 'reference',
  key_feed_head: 'reference',
  key_feed: 'reference',
  nodes: 'reference',
  usage_counters: 'distributed',
  usage_minutes: 'distributed',
  usage_days: 'distributed',
}

/** All usage rows of a workspace are colocated, so a report touches one worker. */
const DISTRIBUTION_COLUMN = 'workspace_id'
const COLOCATED_WITH = 'usage_counters'

const CONNECT_TIMEOUT_MS = 3_000
/** Without a statement timeout: the time to move a table depends on its rows. */
const LOCK_TIMEOUT_MS = 10_000

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

/** A table in the metadata of Citus. By default, those that reference a reference table are `local`. */
interface CitusTable {
  table: string
  kind: Placement | 'local'
  column: string | null
  group: number
}

/** Each table in its own transaction, so that an interrupted run can be repeated. */
export async function distribute(url: string, onTable: (table: string) => void): Promise<TablePlacement[]> {
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
    const existing = await readCitusTables(client)
    const placed: TablePlacement[] = []
    for (const [table, placement] of Object.entries(placements)) {
      onTable(table)
      const changed = !isPlaced(table, placement, existing)
      if (changed) await place(client, table, placement)
      placed.push({ table, placement, changed })
    }
    return placed
  } finally {
    await client.end()
  }
}

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

function isPlaced(table: string, placement: Placement, existing: Map<string, CitusTable>): boolean {
  const found = existing.get(table)
  if (!found || found.kind === 'local') return false
  const isDifferent =
    found.kind !== placement ||
    (placement === 'distributed' &&
      (found.column !== DISTRIBUTION_COLUMN || found.group !== existing.get(COLOCATED_WITH)?.group))
  if (isDifferent)
    throw new DistributeError(
      `${table} is already placed differently (${found.kind}${found.column ? ` by ${found.column}` : ''}). ` +
        `Undo that with "select undistribute_table('${table}')", then retry.`,
    )
  return true
}

async function place(client: pg.Client, table: string, placement: Placement): Promise<void> {
  try {
    if (placement === 'reference') await client.query('select create_reference_table($1::regclass)', [table])
    else
      await client.query('select create_distributed_table($1::regclass, $2, colocate_with => $3)', [
        table,
        DISTRIBUTION_COLUMN,
        table === COLOCATED_WITH ? 'none' : COLOCATED_WITH,
      ])
  } catch (error) {
    const { message, detail, hint } = error as pg.DatabaseError
    const reason = [message, detail, hint].filter(Boolean).join(' ')
    throw new DistributeError(`Could not distribute ${table}: ${reason} (The tables before it are done.)`)
  }
}
