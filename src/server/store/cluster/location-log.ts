// SQL of the location log of each group: at which edges names are open, in commit order. An entry says
// whether a name is open at an edge after the transaction that appended it, so entries may be applied twice.
import { sql } from 'kysely'
import { executeBulk, isPostgres } from '../engine/bulk.ts'
import type { Db, Tx } from '../engine/store.ts'

/** Identifies an entry like that of the change log: sequences are assigned again after a restore. */
export interface LocationPosition {
  readonly sequence: number
  readonly checksum: string
}

export interface Location {
  edge_id: string
  workspace_id: string
  name: string
}

/** The first labels of a host, `<name>.<workspace>`, the id of an edge, and the port of a TCP tunnel. */
export type HostEdge = readonly [host: string, edgeId: string, port?: number]

export const toHostEdge = (host: string, edgeId: string, port: number | null): HostEdge =>
  port === null ? [host, edgeId] : [host, edgeId, port]

export interface LocationChanges {
  opened: readonly HostEdge[]
  closed: readonly HostEdge[]
}

export interface LocationEntry extends LocationPosition, LocationChanges {}

interface Head extends LocationPosition {
  group: string
}

const headColumns = [
  'name as group',
  'location_sequence as sequence',
  'location_checksum as checksum',
] as const

/** Locks the groups of edges, in the order of their names. */
export function lockHeads(tx: Tx, edgeIds: readonly string[]): Promise<Head[]> {
  const groups = tx.selectFrom('edges').select('edge_group').where('id', 'in', edgeIds)
  const query = tx.selectFrom('edge_groups').select(headColumns).where('name', 'in', groups).orderBy('name')
  return (isPostgres(tx) ? query.forNoKeyUpdate() : query).execute()
}

export const readHeads = (db: Db): Promise<Head[]> =>
  db.selectFrom('edge_groups').select(headColumns).execute()

export interface LocationState extends Location {
  slug: string
  /** That of the edge. */
  group: string
  workspaceGroup: string
  /** The number of open tunnels. */
  open: number
  /** Null unless they are TCP tunnels. */
  port: number | null
}

/** Tunnels that count as open. */
const IS_OPEN = "(tunnel.close_reason is null or tunnel.close_reason = 'requested')"

/** Call it after the groups are locked: it has to see what was committed before. */
export async function readLocations(tx: Tx, locations: readonly Location[]): Promise<LocationState[]> {
  const rows = await executeBulk<LocationState>(
    tx,
    { edge_id: 'text', workspace_id: 'text', name: 'text' },
    locations.map(({ edge_id, workspace_id, name }) => [edge_id, workspace_id, name]),
    `select input.edge_id, input.workspace_id, input.name, workspaces.slug,
       workspaces.edge_group as "workspaceGroup", edges.edge_group as "group",
       (select count(*) from open_tunnels as tunnel where tunnel.workspace_id = input.workspace_id
          and tunnel.name = input.name and tunnel.edge_id = input.edge_id
          and ${IS_OPEN}) as open,
       (select ports.port from tcp_ports as ports where ports.workspace_id = input.workspace_id
          and ports.name = input.name and exists (select 1 from open_tunnels as tunnel
            where tunnel.workspace_id = input.workspace_id and tunnel.name = input.name
              and tunnel.edge_id = input.edge_id and tunnel.type = 'tcp' and ${IS_OPEN})) as port
     from input join workspaces on workspaces.id = input.workspace_id
     join edges on edges.id = input.edge_id`,
  )
  return rows.map((row) => ({ ...row, open: Number(row.open) }))
}

interface NewEntry extends LocationChanges {
  checksum: string
}

/** Appends entries to a group that is locked. */
export async function appendLocations(
  tx: Tx,
  head: Head,
  entries: readonly NewEntry[],
  at: number,
): Promise<void> {
  let { sequence, checksum } = head
  for (const { opened, closed, ...entry } of entries) {
    sequence += 1
    await tx
      .insertInto('location_log')
      .values({
        edge_group: head.group,
        sequence,
        checksum: entry.checksum,
        previous_checksum: checksum,
        opened: JSON.stringify(opened),
        closed: JSON.stringify(closed),
        at,
      })
      .execute()
    checksum = entry.checksum
  }
  await tx
    .updateTable('edge_groups')
    .set({ location_sequence: sequence, location_checksum: checksum })
    .where('name', '=', head.group)
    .execute()
}

/** The entries after a position, up to a number of them; undefined if the next one is missing. */
export async function readEntries(
  db: Db,
  group: string,
  after: LocationPosition,
  limit: number,
): Promise<LocationEntry[] | undefined> {
  const rows = await db
    .selectFrom('location_log')
    .select(['sequence', 'checksum', 'previous_checksum', 'opened', 'closed'])
    .where('edge_group', '=', group)
    .where('sequence', '>', after.sequence)
    .orderBy('sequence')
    .limit(limit)
    .execute()
  let previous = after
  for (const row of rows) {
    const follows = row.sequence === previous.sequence + 1 && row.previous_checksum === previous.checksum
    if (!follows) return undefined
    previous = row
  }
  return rows.map(({ sequence, checksum, opened, closed }) => ({
    sequence,
    checksum,
    opened: JSON.parse(opened),
    closed: JSON.parse(closed),
  }))
}

/** The edges of a group that have tunnels, open or not. */
export async function listLocatedEdges(db: Db, group: string): Promise<string[]> {
  const rows = await db
    .selectFrom('edges')
    .select('id')
    .where('edge_group', '=', group)
    // The limit keeps the planner from turning the lookups into a join that scans the table.
    .where(({ eb, selectFrom }) =>
      eb(
        selectFrom('open_tunnels').select('open_tunnels.id').whereRef('edge_id', '=', 'edges.id').limit(1),
        'is not',
        null,
      ),
    )
    .execute()
  return rows.map(({ id }) => id)
}

/** Open tunnels of an edge, in the order of their ids. A name may be repeated. */
export const listLocations = (
  db: Db,
  edgeId: string,
  { after, limit }: { after: string; limit: number },
): Promise<{ id: string; host: string; port: number | null }[]> =>
  db
    .selectFrom('open_tunnels as tunnel')
    .innerJoin('workspaces', 'workspaces.id', 'tunnel.workspace_id')
    .leftJoin('tcp_ports as ports', (join) =>
      join
        .onRef('ports.workspace_id', '=', 'tunnel.workspace_id')
        .onRef('ports.name', '=', 'tunnel.name')
        .on('tunnel.type', '=', 'tcp'),
    )
    .select(['tunnel.id', 'ports.port', sql<string>`tunnel.name || '.' || workspaces.slug`.as('host')])
    .where('tunnel.edge_id', '=', edgeId)
    .where('tunnel.id', '>', after)
    .where(sql.raw<boolean>(IS_OPEN))
    .orderBy('tunnel.id')
    .limit(limit)
    .execute()
