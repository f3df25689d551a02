// SQL of tunnel names: which a workspace has used or reserved, their access rules, and the tunnels of other edges
// that use them. A transaction that admits a tunnel locks the row of its name first.
import { type Selectable, sql } from 'kysely'
import { executeBulk } from './bulk.ts'
import { nowIn, nowText } from './database-clock.ts'
import { type StateColumns, stateColumns, stateOf } from './key-state.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type NameRow = Selectable<Tables['tunnel_names']>
export type NameId = Pick<NameRow, 'workspace_id' | 'name'>
export type LockedName = Pick<NameRow, 'workspace_id' | 'name' | 'created_at' | 'access_rules'>

const idColumns = { workspace_id: 'text', name: 'text' } as const

/** Sorted, so that all transactions lock rows in the same order. */
const sorted = (names: readonly NameId[]) => names.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))

export const keyOf = ({ workspace_id, name }: NameId) => `${workspace_id} ${name}`

/** Inserts or renews the names, and locks them. Each must be in the list once. */
export const upsertNames = (
  tx: Tx,
  names: readonly NameId[],
  { now, expiresAt }: { now: number; expiresAt: number },
): Promise<LockedName[]> =>
  executeBulk(
    tx,
    { ...idColumns, now: 'bigint', expires_at: 'bigint' },
    sorted(names).map(({ workspace_id, name }) => [workspace_id, name, now, expiresAt]),
    `insert into tunnel_names (workspace_id, name, created_at, last_used_at, expires_at)
     select workspace_id, name, now, now, expires_at from input where true
     on conflict (workspace_id, name) do update set last_used_at = excluded.last_used_at,
       expires_at = case when tunnel_names.expires_at is null then null else excluded.expires_at end
     returning workspace_id, name, created_at, access_rules`,
  )

/** Deletes the names of the workspace that expire first, until it has at most `max`. None with access rules. */
export async function trimNames(tx: Tx, workspaceId: string, max: number): Promise<void> {
  const { count } = await tx
    .selectFrom('tunnel_names')
    .select((row) => row.fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirstOrThrow()
  const excess = Number(count) - max
  if (excess <= 0) return
  const oldest = await tx
    .selectFrom('tunnel_names')
    .select('name')
    .where('workspace_id', '=', workspaceId)
    .where('expires_at', 'is not', null)
    .where('access_rules', 'is', null)
    .orderBy('expires_at')
    .orderBy('name')
    .limit(excess)
    .execute()
  if (oldest.length === 0) return
  await tx
    .deleteFrom('tunnel_names')
    .where('workspace_id', '=', workspaceId)
    // Again, because a name may have been reserved meanwhile.
    .where('expires_at', 'is not', null)
    .where('access_rules', 'is', null)
    .where(
      'name',
      'in',
      oldest.map(({ name }) => name),
    )
    .execute()
}

export interface OtherTunnel extends NameId {
  edge_id: string
  id: string
  type: 'http' | 'tcp'
  pool: number
  resume_hash: string | null
  isLive: boolean
}

/**
 * Tunnels of other edges with these names, also of edges whose lease has expired; not those that have moved. Of
 * the edge itself, only those that a user has closed.
 */
export async function findOtherTunnels(
  tx: Tx,
  edgeId: string,
  names: readonly NameId[],
): Promise<OtherTunnel[]> {
  const rows = await executeBulk<OtherTunnel>(
    tx,
    { ...idColumns, edge_id: 'text' },
    names.map(({ workspace_id, name }) => [workspace_id, name, edgeId]),
    `select tunnel.workspace_id, tunnel.name, tunnel.edge_id, tunnel.id, tunnel.type, tunnel.pool,
       tunnel.resume_hash, session.lease_until > ${nowText(tx)} as "isLive"
     from input
     join open_tunnels as tunnel on tunnel.workspace_id = input.workspace_id and tunnel.name = input.name
     join edge_sessions as session on session.edge_id = tunnel.edge_id
     where tunnel.close_reason = 'requested'
       or (tunnel.edge_id <> input.edge_id and tunnel.close_reason is null)`,
  )
  return rows.map((row) => ({ ...row, isLive: Boolean(row.isLive) }))
}

/** The client of the tunnel is at another edge now. A tunnel that a user has closed stays as it is. */
export const markMoved = (tx: Tx, { edge_id, id }: OtherTunnel, at: number) =>
  tx
    .updateTable('open_tunnels')
    .set({
      close_requested_at: sql<number>`coalesce(close_requested_at, ${at})`,
      close_reason: sql<'requested' | 'moved'>`coalesce(close_reason, 'moved')`,
      notice: 0,
    })
    .where('edge_id', '=', edge_id)
    .where('id', '=', id)
    .returning(['close_reason', 'close_requested_by'])
    .executeTakeFirst()

export interface ResolvedKey {
  slug: string
  key_id: string
  workspace_id: string | null
  provisioned_at: number | null
  isActive: boolean
}

/** The workspace and the state of each key; not active if the workspace has no such key. */
export async function resolveKeys(
  tx: Tx,
  keys: readonly { slug: string; keyId: string }[],
): Promise<ResolvedKey[]> {
  type Row = Omit<ResolvedKey, 'isActive'> & { found: string | null } & StateColumns
  const rows = await executeBulk<Row>(
    tx,
    { slug: 'text', key_id: 'text' },
    keys.map(({ slug, keyId }) => [slug, keyId]),
    `select input.slug, input.key_id, workspaces.id as workspace_id, workspaces.provisioned_at,
       api_keys.id as found, ${stateColumns.map((column) => `api_keys.${column}`).join(', ')}, ${nowText(tx)} as now
     from input left join workspaces on workspaces.slug = input.slug
     left join api_keys on api_keys.id = input.key_id and api_keys.workspace_id = workspaces.id`,
  )
  return rows.map((row) => ({ ...row, isActive: row.found !== null && stateOf(row) === 'active' }))
}

export const readRules = (
  db: Db,
  names: readonly NameId[],
): Promise<(NameId & { access_rules: string | null; slug: string })[]> =>
  executeBulk(
    db,
    idColumns,
    names.map(({ workspace_id, name }) => [workspace_id, name]),
    `select input.workspace_id, input.name, tunnel_names.access_rules, workspaces.slug
     from input join workspaces on workspaces.id = input.workspace_id
     left join tunnel_names on tunnel_names.workspace_id = input.workspace_id
       and tunnel_names.name = input.name`,
  )

export const listNames = (db: Db, workspaceId: string, limit: number): Promise<NameRow[]> =>
  db
    .selectFrom('tunnel_names')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('name')
    .limit(limit)
    .execute()

export const findName = (db: Db, { workspace_id, name }: NameId): Promise<NameRow | undefined> =>
  db
    .selectFrom('tunnel_names')
    .selectAll()
    .where('workspace_id', '=', workspace_id)
    .where('name', '=', name)
    .executeTakeFirst()

export async function countReserved(db: Db, workspaceId: string): Promise<number> {
  const { count } = await db
    .selectFrom('tunnel_names')
    .select((row) => row.fn.countAll().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('expires_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Reserves the name, with these rules. Locks its row. */
export async function reserveName(
  tx: Tx,
  row: NameId & { now: number; accessRules?: string | null },
): Promise<NameRow> {
  const { workspace_id, name, now, accessRules } = row
  const rules = accessRules === undefined ? {} : { access_rules: accessRules }
  return tx
    .insertInto('tunnel_names')
    .values({ workspace_id, name, created_at: now, last_used_at: null, expires_at: null, ...rules })
    .onConflict((conflict) =>
      conflict.columns(['workspace_id', 'name']).doUpdateSet({ expires_at: null, ...rules }),
    )
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Ends the reservation, unless the name has access rules. */
export async function releaseName(tx: Tx, { workspace_id, name }: NameId, expiresAt: number): Promise<void> {
  await tx
    .updateTable('tunnel_names')
    .set({ expires_at: expiresAt })
    .where('workspace_id', '=', workspace_id)
    .where('name', '=', name)
    .where('access_rules', 'is', null)
    .execute()
}

/** Renews names of open tunnels that expire before the given time; at most `size`. */
export async function renewNamesInUse(
  tx: Tx,
  { before, expiresAt, size }: { before: number; expiresAt: number; size: number },
): Promise<number> {
  const inUse = await tx
    .selectFrom('tunnel_names as names')
    .select(['names.workspace_id', 'names.name'])
    .where('names.expires_at', '<', before)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('open_tunnels as tunnel')
          .innerJoin('edge_sessions as session', 'session.edge_id', 'tunnel.edge_id')
          .select('tunnel.id')
          .whereRef('tunnel.workspace_id', '=', 'names.workspace_id')
          .whereRef('tunnel.name', '=', 'names.name')
          .where('session.lease_until', '>', nowIn(tx)),
      ),
    )
    .orderBy('names.expires_at')
    .limit(size)
    .execute()
  await executeBulk(
    tx,
    { ...idColumns, expires_at: 'bigint' },
    inUse.map(({ workspace_id, name }) => [workspace_id, name, expiresAt]),
    `update tunnel_names set expires_at = input.expires_at from input
     where tunnel_names.workspace_id = input.workspace_id and tunnel_names.name = input.name
       and tunnel_names.expires_at is not null`,
  )
  return inUse.length
}
