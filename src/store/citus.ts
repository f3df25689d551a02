// Where each table's rows lie on a PostgreSQL with Citus: usage spread over the machines by workspace, everything else,
// which is small and looked up from everywhere, whole on each of them.
import pg from 'pg'
import type { Tables } from './tables.ts'

export type Placement = 'distributed' | 'reference'

/**
 * Every table, which the compiler asks for. In this order: a reference table may refer only to tables that Citus knows
 * already, so those that others refer to come first.
 */
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

/** The rows of one workspace lie together, whichever table they are in: a report touches one machine. */
const COLUMN = 'workspace_id'
const FIRST = 'usage_counters'

const CONNECT_TIMEOUT_MS = 3_000
/** For locks alone. Moving rows takes as long as there are rows, so nothing else is bounded. */
const LOCK_TIMEOUT_MS = 10_000

export interface TablePlacement {
  table: string
  placement: Placement
  /** False where it was so before. */
  changed: boolean
}

/** The message says what is missing and what to do. */
export class CannotDistribute extends Error {
  override name = 'CannotDistribute'
}

/** What Citus knows of a table. One that refers to a reference table is known as `local` before anybody asks for it. */
interface Known {
  table: string
  kind: Placement | 'local'
  column: string | null
  group: number
}

/** Each table in a transaction of its own: whatever ends it half-way, running it again does what is left. */
export async function distribute(url: string, onTable: (table: string) => void): Promise<TablePlacement[]> {
  // Not from the pool, whose connections give up after seconds.
  const client = new pg.Client({
    connectionString: url,
    application_name: 'adit distribute',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    keepAlive: true,
  })
  // Whatever is being asked fails as well, and tells.
  client.on('error', () => {})
  await client.connect()
  try {
    await requireCitus(client)
    const known = await readKnown(client)
    const placed: TablePlacement[] = []
    for (const [table, placement] of Object.entries(placements)) {
      onTable(table)
      const changed = !isInPlace(table, placement, known)
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
    throw new CannotDistribute(
      'This PostgreSQL has no Citus: install the extension on its machines, or leave the tables as they are, on one.',
    )
  if (!citus.created)
    throw new CannotDistribute(
      'Citus is not switched on in this database: run "create extension citus" there as a superuser, then this again.',
    )
}

/** From Citus' own table; its view of the same asks every machine for sizes. */
async function readKnown(client: pg.Client): Promise<Map<string, Known>> {
  const { rows } = await client.query<Known>(
    `select c.relname as "table",
       case when p.partkey is not null then 'distributed' when p.repmodel = 't' then 'reference' else 'local' end as kind,
       column_to_column_name(p.logicalrelid, p.partkey) as "column",
       p.colocationid as "group"
     from pg_dist_partition as p join pg_class as c on c.oid = p.logicalrelid
     where pg_table_is_visible(c.oid)`,
  )
  return new Map(rows.map((row) => [row.table, row]))
}

function isInPlace(table: string, placement: Placement, known: Map<string, Known>): boolean {
  const found = known.get(table)
  if (!found || found.kind === 'local') return false
  const wrong =
    found.kind !== placement ||
    (placement === 'distributed' && (found.column !== COLUMN || found.group !== known.get(FIRST)?.group))
  if (wrong)
    throw new CannotDistribute(
      `Somebody has placed ${table} otherwise (${found.kind}${found.column ? ` by ${found.column}` : ''}): ` +
        `undo that with "select undistribute_table('${table}')", then run this again.`,
    )
  return true
}

async function place(client: pg.Client, table: string, placement: Placement): Promise<void> {
  try {
    if (placement === 'reference') await client.query('select create_reference_table($1::regclass)', [table])
    else
      await client.query('select create_distributed_table($1::regclass, $2, colocate_with => $3)', [
        table,
        COLUMN,
        table === FIRST ? 'none' : FIRST,
      ])
  } catch (error) {
    const { message, detail, hint } = error as pg.DatabaseError
    const words = [message, detail, hint].filter(Boolean).join(' ')
    throw new CannotDistribute(`${table} stays where it is: ${words} (What was done before it is done.)`)
  }
}
