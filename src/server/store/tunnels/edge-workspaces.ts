// SQL of the workspaces for which an edge has verified an API key or reported usage. Rows are never deleted:
// they say where to look for usage that a hostile edge has reported.
import type { Selectable } from 'kysely'
import { HOUR_MS } from '../../../lib/time.ts'
import { executeBulk } from '../engine/bulk.ts'
import { nowText } from '../engine/clock.ts'
import type { Page } from '../engine/page.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

export type EdgeWorkspace = Pick<Selectable<Tables['edge_workspaces']>, 'edge_id' | 'workspace_id'>

const columns = { edge_id: 'text', workspace_id: 'text' } as const

const toRows = (pairs: readonly EdgeWorkspace[]) =>
  pairs.map(({ edge_id, workspace_id }) => [edge_id, workspace_id])

/** Returns the pairs that are stored. */
export const findEdgeWorkspaces = (db: Db, pairs: readonly EdgeWorkspace[]): Promise<EdgeWorkspace[]> =>
  executeBulk(
    db,
    columns,
    toRows(pairs),
    `select stored.edge_id, stored.workspace_id from input
     join edge_workspaces as stored
       on stored.edge_id = input.edge_id and stored.workspace_id = input.workspace_id`,
  )

/** Sorted, so that all transactions write in the same order. */
const sorted = <P extends EdgeWorkspace>(pairs: readonly P[]): P[] =>
  pairs.toSorted((a, b) => (a.edge_id + a.workspace_id < b.edge_id + b.workspace_id ? -1 : 1))

export async function insertEdgeWorkspaces(tx: Tx, pairs: readonly EdgeWorkspace[]): Promise<void> {
  await executeBulk(
    tx,
    columns,
    toRows(sorted(pairs)),
    `insert into edge_workspaces (edge_id, workspace_id, verified_at)
     select edge_id, workspace_id, ${nowText(tx)} from input where true on conflict do nothing`,
  )
}

/** Ids by slug, without workspaces of other groups. */
export const findGroupWorkspaces = (
  db: Db,
  group: string,
  slugs: readonly string[],
): Promise<{ slug: string; id: string }[]> =>
  executeBulk(
    db,
    { edge_group: 'text', slug: 'text' },
    slugs.map((slug) => [group, slug]),
    `select workspaces.slug, workspaces.id from input
     join workspaces on workspaces.slug = input.slug and workspaces.edge_group = input.edge_group`,
  )

export interface ListedWorkspace {
  id: string
  slug: string
}

/** Workspaces for which the edge has verified a key or reported usage, in the order of their ids. */
export function listEdgeWorkspaces(
  db: Db,
  edgeId: string,
  { after, limit }: Page,
): Promise<ListedWorkspace[]> {
  const query = db
    .selectFrom('edge_workspaces as verified')
    .innerJoin('workspaces', 'workspaces.id', 'verified.workspace_id')
    .select(['workspaces.id', 'workspaces.slug'])
    .where('verified.edge_id', '=', edgeId)
    .orderBy('verified.workspace_id')
    .limit(limit)
  return (after === undefined ? query : query.where('verified.workspace_id', '>', after)).execute()
}

interface CountedEvents extends EdgeWorkspace {
  /** Events in this hour, by the clock of the database. */
  events: number
  hour: number
}

/** Adds tunnel events to the count of this hour. Pairs must be unique. */
export function countTunnelEvents(
  tx: Tx,
  added: readonly (EdgeWorkspace & { added: number })[],
): Promise<CountedEvents[]> {
  const hour = `(${nowText(tx)} / ${HOUR_MS} * ${HOUR_MS})`
  return executeBulk(
    tx,
    { edge_id: 'text', workspace_id: 'text', added: 'bigint' },
    sorted(added).map((pair) => [pair.edge_id, pair.workspace_id, pair.added]),
    `update edge_workspaces set events_hour = ${hour},
       events = case when events_hour = ${hour} then events + input.added else input.added end
     from input
     where edge_workspaces.edge_id = input.edge_id and edge_workspaces.workspace_id = input.workspace_id
     returning edge_workspaces.edge_id, edge_workspaces.workspace_id, events, events_hour as hour`,
  )
}
