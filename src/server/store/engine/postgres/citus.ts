// Table placement on PostgreSQL with Citus: usage tables are distributed by workspace and colocated. All
// others are plain tables on the coordinator, so that reading and writing them needs no worker.
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { isConflict } from '../errors.ts'
import type { Tables } from '../tables.ts'
import {
  type CitusTable,
  DistributeError,
  readCitusTables,
  readShardCount,
  requireCitus,
} from './citus-catalog.ts'

type Placement = 'distributed' | 'local'

export const placements: Readonly<Record<keyof Tables, Placement>> = {
  schema_version: 'local',
  edge_groups: 'local',
  workspaces: 'local',
  users: 'local',
  api_keys: 'local',
  key_requests: 'local',
  edges: 'local',
  audit_log: 'local',
  idempotent_responses: 'local',
  identities: 'local',
  sessions: 'local',
  verifications: 'local',
  two_factors: 'local',
  used_codes: 'local',
  members: 'local',
  links: 'local',
  notices: 'local',
  notice_mails: 'local',
  operator_alerts: 'local',
  key_rejections: 'local',
  webhook_endpoints: 'local',
  webhook_deliveries: 'local',
  device_authorizations: 'local',
  change_log_head: 'local',
  change_log: 'local',
  nodes: 'local',
  maintenance: 'local',
  audit_export: 'local',
  edge_sessions: 'local',
  edge_workspaces: 'local',
  open_tunnels: 'local',
  location_log: 'local',
  recent_keys: 'local',
  tunnel_names: 'local',
  tcp_ports: 'local',
  usage_counters: 'distributed',
  usage_hours: 'distributed',
  usage_days: 'distributed',
}

const DISTRIBUTION_COLUMN = 'workspace_id'

const CONNECT_TIMEOUT_MS = 3_000
/**
 * Short, because requests queue behind a lock that this command waits for. It is less than PostgreSQL's
 * deadlock timeout, so this command fails in a deadlock, and not the request.
 */
const LOCK_TIMEOUT_MS = 800
const LOCK_NOT_AVAILABLE = '55P03'
const ATTEMPTS_MAX = 100
const RETRY_MS = 500

interface TablePlacement {
  table: string
  placement: Placement
  /** False if the table was placed already. */
  changed: boolean
}

/** Each step is a transaction of its own, so that an interrupted run can be repeated. */
export async function distribute(url: string, onProgress: (step: string) => void): Promise<TablePlacement[]> {
  // A connection of its own, because the statement timeout of the pool is too short.
  const client = new pg.Client({
    connectionString: url,
    application_name: 'adit distribute',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  })
  // The query in progress rejects with the error.
  client.on('error', () => {})
  await client.connect()
  try {
    await requireCitus(client)
    // If this process is killed, the server stops too. Not every platform has the setting.
    await client.query('set client_connection_check_interval = 500').catch(() => {})
    // Behind a pooler, the timeouts of requests are set for the role.
    await client.query('set statement_timeout = 0; set idle_in_transaction_session_timeout = 0')
    await waitForOthers(client, onProgress)
    await client.query(`set lock_timeout = ${LOCK_TIMEOUT_MS}`)
    const changed = new Set<string>()
    await requireLocal(client)
    await distributeUsage({ client, onProgress, changed })
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

/** Lets one command run at a time: a second one waits, and then sees what the first has done. */
async function waitForOthers(client: pg.Client, onProgress: (step: string) => void): Promise<void> {
  const key = `hashtext('adit distribute')`
  const { rows } = await client.query(`select pg_try_advisory_lock(${key}) as "isFirst"`)
  if (rows[0]?.isFirst) return
  onProgress('waiting for another distribute command to end')
  await client.query(`select pg_advisory_lock(${key})`)
}

const tablesPlaced = (placement: Placement) =>
  Object.keys(placements).filter((table) => placements[table as keyof Tables] === placement)

/** Citus also manages the tables that refer to a reference table, so the remedy includes them. */
async function requireLocal(client: pg.Client): Promise<void> {
  const existing = await readCitusTables(client)
  const table = tablesPlaced('local').find((name) => existing.has(name))
  if (table)
    throw new DistributeError(
      `${table} must be a plain table on the coordinator. Run "select undistribute_table('${table}', ` +
        'cascade_via_foreign_keys => true)", then retry.',
    )
}

interface Step {
  client: pg.Client
  table: string
  onProgress: (step: string) => void
  changed: Set<string>
}

/**
 * Distributes all tables in one transaction. If some were on workers and some on the coordinator, a failure
 * during a commit could make a counter and the total of its day differ.
 */
async function distributeUsage({ client, onProgress, changed }: Omit<Step, 'table'>): Promise<void> {
  const existing = await readCitusTables(client)
  const distributed = findDistributed(existing)
  const tables = tablesPlaced('distributed').filter((table) => !isDistributed(table, existing, distributed))
  if (tables.length > 0) {
    const shardCount = await readShardCount(client)
    const names = tables.join(', ')
    onProgress(`distributing ${names}`)
    await retryLocks({ client, table: names, onProgress, changed }, () =>
      inTransaction(client, async () => {
        await client.query(`lock table ${names} in exclusive mode`)
        let colocatedWith = distributed?.table
        for (const table of tables) {
          const options = colocatedWith
            ? `colocate_with => '${colocatedWith}'`
            : `'hash', 'none', ${shardCount}`
          await client.query(`select create_distributed_table($1::regclass, $2, ${options})`, [
            table,
            DISTRIBUTION_COLUMN,
          ])
          colocatedWith ??= table
        }
      }),
    )
    for (const table of tables) changed.add(table)
  }
  for (const table of tablesPlaced('distributed'))
    await truncateCopied({ client, table, onProgress, changed })
}

/** The coordinator keeps the copied rows, invisibly, until they are truncated. */
async function truncateCopied(step: Step): Promise<void> {
  const { client, table } = step
  const { rows } = await client.query('select pg_relation_size($1::regclass) > 0 as "hasRows"', [table])
  if (rows[0]?.hasRows)
    await retryLocks(step, () =>
      client.query('select truncate_local_data_after_distributing_table($1::regclass)', [table]),
    )
}

async function inTransaction(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await client.query('begin')
  try {
    await work()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

/**
 * The first usage table that is distributed. The others are colocated with it, so that all usage rows of a
 * workspace are on one worker.
 */
const findDistributed = (existing: Map<string, CitusTable>) =>
  tablesPlaced('distributed')
    .map((table) => existing.get(table))
    .find((found) => found?.column === DISTRIBUTION_COLUMN)

function isDistributed(table: string, existing: Map<string, CitusTable>, colocated?: CitusTable): boolean {
  const found = existing.get(table)
  if (!found || found.kind === 'local') return false
  if (found.column === DISTRIBUTION_COLUMN && found.group === colocated?.group) return true
  throw new DistributeError(
    `${table} is already placed differently (${found.kind}${found.column ? ` by ${found.column}` : ''}). ` +
      `Undo that with "select undistribute_table('${table}')", then retry.`,
  )
}

async function retryLocks({ table, onProgress }: Step, work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      await work()
      return
    } catch (error) {
      const { code, message, detail, hint } = error as pg.DatabaseError
      const isLocked = code === LOCK_NOT_AVAILABLE || isConflict(error)
      if (!isLocked || attempt === ATTEMPTS_MAX) {
        const reason = [message, detail, hint].filter(Boolean).join(' ')
        throw new DistributeError(`Could not place ${table}: ${reason} (Completed steps are kept.)`)
      }
      onProgress(`${table} is in use: attempt ${attempt + 1}`)
      await sleep(RETRY_MS * (0.5 + Math.random()))
    }
}
