// SQL that finds and deletes rows past their retention, in batches.
import { type RawBuilder, sql } from 'kysely'
import { isPostgres } from '../engine/bulk.ts'
import type { Db, Tx } from '../engine/store.ts'

interface Expiry {
  /** The indexed column that is compared with the limit. */
  by: string
  /** The columns that make the order unique, so that a batch has an exact end. */
  ties: readonly string[]
  /** The column with the row's time, if it is not `by`. */
  time?: string
  /** Rows with a value in this column are kept. */
  unless?: string
}

const expiring = {
  sessions: { by: 'expires_at', ties: ['id'] },
  verifications: { by: 'expires_at', ties: ['id'] },
  links: { by: 'expires_at', ties: ['id'] },
  used_codes: { by: 'at', ties: ['user_id', 'hash'] },
  idempotent_responses: { by: 'created_at', ties: ['workspace_id', 'id'] },
  notices: { by: 'created_at', ties: ['kind', 'subject_id', 'dedup_key'] },
  notice_mails: { by: 'created_at', ties: ['digest_id', 'user_id'] },
  operator_alerts: { by: 'created_at', ties: ['kind', 'subject_id', 'dedup_key'] },
  key_rejections: { by: 'hour', ties: ['key_id'] },
  webhook_deliveries: { by: 'created_at', ties: ['endpoint_id', 'id'] },
  key_requests: { by: 'expires_at', ties: ['id'] },
  device_authorizations: { by: 'expires_at', ties: ['hash'] },
  tunnel_names: { by: 'expires_at', ties: ['workspace_id', 'name'], unless: 'access_rules' },
  location_log: { by: 'at', ties: ['edge_group', 'sequence'] },
  tcp_ports: { by: 'last_used_at', ties: ['port'] },
  // The primary key begins with the hour.
  usage_hours: { by: 'hour', ties: ['workspace_id', 'edge_id'] },
  // Ids sort by time, so the primary key is enough.
  audit_log: { by: 'id', ties: [], time: 'at' },
} as const satisfies Record<string, Expiry>

export type ExpiringTable = keyof typeof expiring

/** Usage tables with their time column. */
const usage = { usage_counters: 'day', usage_hours: 'hour' } as const

export interface Expired {
  rows: number
  oldest: number | null
}

const withoutValue = ({ unless }: Expiry) =>
  unless === undefined ? sql`` : sql` and ${sql.ref(unless)} is null`

const expiredBefore = (expiry: Expiry, before: number | string) =>
  sql`${sql.ref(expiry.by)} < ${before}${withoutValue(expiry)}`

/** Deletes the oldest rows before the limit, at most `size`. Returns how many. */
export async function deleteExpired(
  db: Tx,
  table: ExpiringTable,
  before: number | string,
  size: number,
): Promise<number> {
  const expiry: Expiry = expiring[table]
  const { by, ties } = expiry
  const order = [by, ...ties]
  const columns = sql.join(order.map((column) => sql.ref(column)))
  const isExpired = expiredBefore(expiry, before)
  const oldest = sql`from ${sql.table(table)} where ${isExpired} order by ${columns}`
  if (isPostgres(db)) {
    // Deletes by ctid, because for a range the planner may read all expired rows. The condition is repeated
    // for rows that were renewed meanwhile; `is true` keeps the planner from using an index for it.
    const ids = sql`select ctid ${oldest} limit ${size}`
    return count(
      db,
      sql`delete from ${sql.table(table)} where ctid = any(array(${ids})) and (${isExpired}) is true`,
    )
  }
  const { rows } = await sql<Record<string, string | number>>`
    select ${columns} ${oldest} limit 1 offset ${size - 1}`.execute(db)
  const [last] = rows
  const within = last
    ? sql`${sql.ref(by)} <= ${last[by]} and (${columns}) <= (${sql.join(order.map((column) => last[column]))})`
    : isExpired
  return count(db, sql`delete from ${sql.table(table)} where ${within}${withoutValue(expiry)}`)
}

const count = async (db: Tx, statement: RawBuilder<unknown>) =>
  Number((await statement.execute(db)).numAffectedRows ?? 0)

export async function countExpired(db: Db, table: ExpiringTable, before: number | string): Promise<Expired> {
  const expiry: Expiry = expiring[table]
  const { rows } = await sql<Expired>`
    select count(*) as rows, min(${sql.ref(expiry.time ?? expiry.by)}) as oldest from ${sql.table(table)}
    where ${expiredBefore(expiry, before)}`.execute(db)
  return rows[0] as Expired
}

export interface UsageBatch {
  table: keyof typeof usage
  workspaceIds: readonly string[]
  before: number
}

/**
 * Deletes at most `size` rows of some workspaces, along the primary key. If the table is distributed, the
 * workspaces must belong to one shard: a `ctid` is unique only within a shard, and Citus rejects a deletion
 * by it that would involve several. Not for hours on SQLite.
 */
export function deleteUsage(
  db: Tx,
  { table, workspaceIds, before }: UsageBatch,
  size: number,
): Promise<number> {
  const id = sql.ref(isPostgres(db) ? 'ctid' : 'rowid')
  const among = sql`workspace_id in (${sql.join(workspaceIds)})`
  const oldest = sql`select ${id} from ${sql.table(table)}
    where ${among} and ${sql.ref(usage[table])} < ${before} limit ${size}`
  const isOldest = isPostgres(db) ? sql`${id} = any(array(${oldest}))` : sql`${id} in (${oldest})`
  return count(db, sql`delete from ${sql.table(table)} where ${among} and ${isOldest}`)
}

export async function countUsage(db: Db, { table, workspaceIds, before }: UsageBatch): Promise<Expired> {
  const time = sql.ref(usage[table])
  const { rows } = await sql<Expired>`
    select count(*) as rows, min(${time}) as oldest from ${sql.table(table)}
    where workspace_id in (${sql.join(workspaceIds)}) and ${time} < ${before}`.execute(db)
  return rows[0] as Expired
}

/** The oldest hours, and their workspaces. */
export const listOldHours = (db: Db, before: number, limit: number) =>
  db
    .selectFrom('usage_hours')
    .select(['hour', 'workspace_id as workspaceId'])
    .where('hour', '<', before)
    .orderBy('hour')
    .orderBy('workspace_id')
    .limit(limit)
    .execute()

/** Lists ids of workspaces in their order. */
export async function listWorkspaceIds(db: Db, after: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('workspaces')
    .select('id')
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}
