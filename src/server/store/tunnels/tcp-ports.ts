// SQL of the ports of TCP tunnels. A port is assigned to a name by inserting a row, and only retention and
// the operator delete rows.
import { type Selectable, sql } from 'kysely'
import { executeBulk, isPostgres } from '../engine/bulk.ts'
import { nowIn, nowText } from '../engine/clock.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { type NameId, nameColumns, nameKey } from './names.ts'

type PortRow = Selectable<Tables['tcp_ports']>

/** The ports of these names, by `nameKey`. Locks them, and sets the time of their last use. */
export async function usePorts(tx: Tx, names: readonly NameId[]): Promise<Map<string, number>> {
  const input = names.map(({ workspace_id, name }) => [workspace_id, name])
  const isInInput = '(workspace_id, name) in (select workspace_id, name from input)'
  // In a fixed order, because the update locks rows in the order of its plan, and could deadlock.
  if (isPostgres(tx) && names.length > 1)
    await executeBulk(
      tx,
      nameColumns,
      input,
      `select from tcp_ports where ${isInInput} order by workspace_id, name for no key update`,
    )
  const rows = await executeBulk<PortRow>(
    tx,
    nameColumns,
    input,
    `update tcp_ports set last_used_at = ${nowText(tx)} where ${isInInput} returning *`,
  )
  return new Map(rows.map((row) => [nameKey(row), row.port]))
}

/** Returns the ports that are not assigned. */
export async function listFreePorts(tx: Tx, ports: readonly number[]): Promise<number[]> {
  const rows = await executeBulk<{ port: number }>(
    tx,
    { port: 'bigint' },
    ports.map((port) => [port]),
    // A subquery for each port: with a join, the planner may read all rows.
    `select input.port from input
     where (select stored.port from tcp_ports as stored where stored.port = input.port) is null`,
  )
  return rows.map(({ port }) => port)
}

/** Returns false if the port is assigned. */
export async function insertPort(tx: Tx, port: number, { workspace_id, name }: NameId): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('tcp_ports')
    .values({ port, workspace_id, name, assigned_at: nowIn(tx), last_used_at: nowIn(tx) })
    .onConflict((conflict) => conflict.column('port').doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

/** Names of a workspace that have a port. */
export async function listNamesWithPort(db: Db, workspaceId: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('tcp_ports')
    .select('name')
    .where('workspace_id', '=', workspaceId)
    .orderBy('name')
    .limit(limit)
    .execute()
  return rows.map(({ name }) => name)
}

export async function countPorts(db: Db, { first, last }: { first: number; last: number }): Promise<number> {
  const { count } = await db
    .selectFrom('tcp_ports')
    .select((row) => row.fn.countAll().as('count'))
    .where('port', '>=', first)
    .where('port', '<=', last)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Whether a TCP tunnel with the name is open, or was when its edge disappeared. */
const isOpen = sql<boolean>`exists (select 1 from open_tunnels as tunnel where tunnel.type = 'tcp'
  and tunnel.workspace_id = tcp_ports.workspace_id and tunnel.name = tcp_ports.name)`

const isReserved = sql<boolean>`exists (select 1 from tunnel_names as names where names.expires_at is null
  and names.workspace_id = tcp_ports.workspace_id and names.name = tcp_ports.name)`

/** Sorted by port. */
export const listPorts = (db: Db, { after, limit }: { after: number; limit: number }) =>
  db
    .selectFrom('tcp_ports')
    .innerJoin('workspaces', 'workspaces.id', 'tcp_ports.workspace_id')
    .selectAll('tcp_ports')
    .select(['workspaces.slug', isOpen.as('isOpen'), isReserved.as('isReserved')])
    .where('port', '>', after)
    .orderBy('port')
    .limit(limit)
    .execute()

export type ListedPort = Awaited<ReturnType<typeof listPorts>>[number]

/** Locks the port, so that its name is not opened meanwhile. */
export async function lockPort(tx: Tx, port: number) {
  const query = tx.selectFrom('tcp_ports').selectAll().where('port', '=', port)
  const row = await (isPostgres(tx) ? query.forUpdate() : query).executeTakeFirst()
  if (!row) return undefined
  // Another statement, which sees what was committed while the first one waited for the lock.
  const { open } = await tx
    .selectFrom('tcp_ports')
    .select(isOpen.as('open'))
    .where('port', '=', port)
    .executeTakeFirstOrThrow()
  return { ...row, isOpen: Boolean(open) }
}

export async function deletePort(tx: Tx, port: number): Promise<void> {
  await tx.deleteFrom('tcp_ports').where('port', '=', port).execute()
}

/**
 * Renews ports of open tunnels, and of reserved names unless their workspace was archived before
 * `archivedSince`. Looks at `size` ports after the given one, and returns the last of them.
 */
export async function renewPorts(
  tx: Tx,
  {
    after,
    size,
    usedBefore,
    archivedSince,
  }: Record<'after' | 'size' | 'usedBefore' | 'archivedSince', number>,
): Promise<{ seen: number; last: number }> {
  const rows = await tx
    .selectFrom('tcp_ports')
    .select('port')
    .where('port', '>', after)
    .orderBy('port')
    .limit(size)
    .execute()
  const last = rows.at(-1)?.port ?? after
  const isActive = sql<boolean>`exists (select 1 from workspaces where workspaces.id = tcp_ports.workspace_id
    and (archived_at is null or archived_at >= ${archivedSince}))`
  await tx
    .updateTable('tcp_ports')
    .set({ last_used_at: nowIn(tx) })
    .where('port', '>', after)
    .where('port', '<=', last)
    .where('last_used_at', '<', usedBefore)
    .where(sql<boolean>`(${isOpen} or (${isReserved} and ${isActive}))`)
    .execute()
  return { seen: rows.length, last }
}
