import type { Migration } from './migration.ts'

/**
 * Open tunnels by hour instead of by minute: `open` has the peaks of the 60 minutes. The row whose edge is ''
 * is the total of all edges. Rows of `usage_minutes` are converted later, while nodes are serving.
 *
 * The key starts with the hour: the rows that are written are adjacent, and so are those to delete.
 */
export const usageHours: Migration = ({ int64, clustered }) => [
  `create table usage_hours (
     workspace_id text not null,
     hour ${int64} not null,
     edge_id text not null,
     open text not null,
     primary key (hour, workspace_id, edge_id)
   )${clustered}`,
]
