import type { Migration } from './migration.ts'

/**
 * Workspaces of which an edge has verified an API key, and how many events its tunnels have caused. Edges
 * that have reported usage or tunnels before have done so: what they still have to report is accepted.
 */
export const edgeWorkspaces: Migration = ({ int64, strict }) => [
  `create table edge_workspaces (
     edge_id text not null,
     workspace_id text not null,
     verified_at ${int64} not null,
     events_hour ${int64} not null default 0,
     events integer not null default 0,
     primary key (edge_id, workspace_id)
   )${strict}`,
  ...['usage_counters', 'open_tunnels'].map(
    (table) => `insert into edge_workspaces (edge_id, workspace_id, verified_at)
     select distinct edge_id, workspace_id, 0 from ${table} where true on conflict do nothing`,
  ),
]
