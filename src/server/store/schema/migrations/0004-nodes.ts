import type { Migration } from './migration.ts'

/**
 * Nodes with a cache, and the position in the change log up to which each has read. `heard_at` is
 * informational.
 *
 * Change log entries get a checksum, and reference that of the previous entry: after a failover that lost the
 * latest entries, or a restore, sequence numbers are reused, and the number alone would be ambiguous.
 */
export const nodes: Migration = ({ int64, strict }) => [
  `create table nodes (
     id text primary key,
     host text not null,
     pid integer not null,
     version text not null,
     lease_ms integer not null,
     seen ${int64} not null,
     mark text not null,
     started_at ${int64} not null,
     heard_at ${int64} not null
   )${strict}`,
  `alter table key_feed_head add column mark text not null default ''`,
  `alter table key_feed add column mark text not null default ''`,
  `alter table key_feed add column before text not null default ''`,
]
