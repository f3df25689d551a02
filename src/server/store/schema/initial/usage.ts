import type { Migration } from '../migration.ts'

/**
 * The primary keys contain the workspace, so that the tables can be distributed by it. There are no foreign
 * keys, so that merging a report reads no other table.
 *
 * On SQLite, counters and days are stored in insertion order. A report covers one day of many workspaces: in
 * the order of the primary key each row would be on a different page, in insertion order they share a few.
 */
export const usage: Migration = ({ int64, strict, clustered, halfFull }) => [
  `create table usage_counters (
     workspace_id text not null,
     day ${int64} not null,
     edge_id text not null,
     epoch text not null,
     requests ${int64} not null,
     bytes_in ${int64} not null,
     bytes_out ${int64} not null,
     events ${int64} not null,
     last_seen ${int64},
     primary key (workspace_id, day, edge_id, epoch)
   )${strict}${halfFull}`,

  // The key starts with the hour: the rows that are written are adjacent, and so are those to delete.
  `create table usage_hours (
     workspace_id text not null,
     hour ${int64} not null,
     edge_id text not null,
     open text not null,
     primary key (hour, workspace_id, edge_id)
   )${clustered}${halfFull}`,

  `create table usage_days (
     workspace_id text not null,
     day ${int64} not null,
     requests ${int64} not null default 0,
     bytes_in ${int64} not null default 0,
     bytes_out ${int64} not null default 0,
     events ${int64} not null default 0,
     peak_tunnels ${int64} not null default 0,
     last_seen ${int64},
     primary key (workspace_id, day)
   )${strict}${halfFull}`,
]
