// SQL of tunnel names: those that a workspace has used or reserved, and their access rules. A transaction
// that admits a tunnel locks the row of its name first.
import type { Selectable } from 'kysely'
import { executeBulk, isPostgres } from '../engine/bulk.ts'
import { nowIn, nowText } from '../engine/clock.ts'
import type { Page } from '../engine/page.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

export type NameRow = Selectable<Tables['tunnel_names']>
export type NameId = Pick<NameRow, 'workspace_id' | 'name'>
/** Which edge counts the name in `peakTunnels`. */
export type NameCount = Pick<NameRow, 'counting_edge_id' | 'counting_from'> & { now: number }
export type LockedName = NameId & NameCount & Pick<NameRow, 'created_at' | 'access_rules'>

export const nameColumns = { workspace_id: 'text', name: 'text' } as const

/** Sorted, so that all transactions lock rows in the same order. */
const sorted = (names: readonly NameId[]) => names.toSorted((a, b) => (nameKey(a) < nameKey(b) ? -1 : 1))

export const nameKey = ({ workspace_id, name }: NameId) => `${workspace_id} ${name}`

/** Inserts or renews the names, and locks them. Names must be unique. */
export const upsertNames = (
  tx: Tx,
  names: readonly NameId[],
  { now, expiresAt }: { now: number; expiresAt: number },
): Promise<LockedName[]> =>
  executeBulk(
    tx,
    { ...nameColumns, now: 'bigint', expires_at: 'bigint' },
    sorted(names).map(({ workspace_id, name }) => [workspace_id, name, now, expiresAt]),
    `insert into tunnel_names (workspace_id, name, created_at, last_used_at, expires_at)
     select workspace_id, name, now, now, expires_at from input where true
     on conflict (workspace_id, name) do update set last_used_at = excluded.last_used_at,
       expires_at = case when tunnel_names.expires_at is null then null else excluded.expires_at end
     returning workspace_id, name, created_at, access_rules, counting_edge_id, counting_from,
       ${nowText(tx)} as now`,
  )

/**
 * Locks the names of tunnels before they are closed, so that one transaction at a time decides whether it
 * closes the last connection of a tunnel. SQLite has one writer anyway.
 */
export async function lockNamesOfTunnels(
  tx: Tx,
  tunnels: readonly { edge_id: string; id: string }[],
): Promise<void> {
  if (!isPostgres(tx)) return
  await executeBulk(
    tx,
    { edge_id: 'text', id: 'text' },
    tunnels.map(({ edge_id, id }) => [edge_id, id]),
    `select from tunnel_names where (workspace_id, name) in (
       select workspace_id, name from open_tunnels where (edge_id, id) in (select edge_id, id from input))
     order by workspace_id collate "C", name collate "C" for update`,
  )
}

/** Locks one name, see `lockNamesOfTunnels`. */
export async function lockName(tx: Tx, { workspace_id, name }: NameId): Promise<void> {
  if (!isPostgres(tx)) return
  await tx
    .selectFrom('tunnel_names')
    .select('name')
    .where('workspace_id', '=', workspace_id)
    .where('name', '=', name)
    .forUpdate()
    .execute()
}

/** Deletes the names of a workspace that expire first beyond `max`, but none with access rules or open. */
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
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('open_tunnels as tunnel')
            .select('tunnel.id')
            .whereRef('tunnel.workspace_id', '=', 'tunnel_names.workspace_id')
            .whereRef('tunnel.name', '=', 'tunnel_names.name'),
        ),
      ),
    )
    .orderBy('expires_at')
    .orderBy('name')
    .limit(excess)
    .execute()
  if (oldest.length === 0) return
  await tx
    .deleteFrom('tunnel_names')
    .where('workspace_id', '=', workspaceId)
    // Checked again, because a name may have been reserved meanwhile.
    .where('expires_at', 'is not', null)
    .where('access_rules', 'is', null)
    .where(
      'name',
      'in',
      oldest.map(({ name }) => name),
    )
    .execute()
}

export const readRules = (
  db: Db,
  names: readonly NameId[],
): Promise<(NameId & NameCount & { access_rules: string | null; slug: string })[]> =>
  executeBulk(
    db,
    nameColumns,
    names.map(({ workspace_id, name }) => [workspace_id, name]),
    `select input.workspace_id, input.name, tunnel_names.access_rules, workspaces.slug,
       tunnel_names.counting_edge_id, tunnel_names.counting_from, ${nowText(db)} as now
     from input join workspaces on workspaces.id = input.workspace_id
     left join tunnel_names on tunnel_names.workspace_id = input.workspace_id
       and tunnel_names.name = input.name`,
  )

/** By name, after `after`. */
export function listNames(db: Db, workspaceId: string, { after, limit }: Page): Promise<NameRow[]> {
  const query = db
    .selectFrom('tunnel_names')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('name')
    .limit(limit)
  return (after === undefined ? query : query.where('name', '>', after)).execute()
}

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

/** Renews at most `size` names of open tunnels that expire before a time. */
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
    { ...nameColumns, expires_at: 'bigint' },
    inUse.map(({ workspace_id, name }) => [workspace_id, name, expiresAt]),
    `update tunnel_names set expires_at = input.expires_at from input
     where tunnel_names.workspace_id = input.workspace_id and tunnel_names.name = input.name
       and tunnel_names.expires_at is not null`,
  )
  return inUse.length
}
